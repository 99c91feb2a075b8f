import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { runProgram } from './run-program.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the whole run keeps what it compiled. */
    javaClassFolder: string;
  }
}

/** Debian's packages of Curator and ZooKeeper, and what they need. */
const JARS = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'zookeeper',
  'zookeeper-recipes-lock',
  'guava',
  'slf4j-nop',
].map((jar) => `/usr/share/java/${jar}.jar`);
/** They make a JVM start fast and stay small. */
const JVM_FLAGS = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

/** Arguments of `java` for a program of one file that uses Curator; it is compiled once for the whole run. */
export async function javaArguments(source: URL): Promise<string[]> {
  const file = fileURLToPath(source);
  const name = basename(file, '.java');
  const classes = join(inject('javaClassFolder'), name);
  if (!existsSync(classes)) await compile(file, classes);
  return [...JVM_FLAGS, '-cp', [classes, ...JARS].join(':'), name];
}

/** Test files run side by side: whoever is done first wins, and nobody sees half of it. */
async function compile(file: string, classes: string): Promise<void> {
  const draft = await mkdtemp(`${classes}-`);
  const flags = JVM_FLAGS.map((flag) => `-J${flag}`);
  const { code, stderr } = await runProgram('javac', [...flags, '-cp', JARS.join(':'), '-d', draft, file]);
  if (code !== 0) throw new Error(`${file} does not compile:\n${stderr}`);
  await rename(draft, classes).catch(async (error) => {
    if (!existsSync(classes)) throw error;
    await rm(draft, { recursive: true });
  });
}
