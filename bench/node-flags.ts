/**
 * For every process of Node that is measured in turns with others. Left idle for some seconds, V8 collects what it can,
 * the shapes of objects among it, and throws away the code that was compiled for them: a process that is measured for
 * half a second in each minute would be measured compiling. One that is in use keeps its code, as one of Java does.
 */
export const STEADY_NODE_FLAGS = ['--no-memory-reducer'];
