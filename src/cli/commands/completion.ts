import { Argument } from 'commander';
import { bashScript } from '../completion/bash-script.ts';
import { completedCommands } from '../completion/command-tree.ts';
import { zshScript } from '../completion/zsh-script.ts';
import type { DefineCommand } from '../define-command.ts';

/** Prints what makes a shell complete our commands and options. */
export const define: DefineCommand = (command, { console }) => {
  command
    .addArgument(new Argument('<shell>', 'which shell').choices(['bash', 'zsh']))
    .addHelpText(
      'after',
      `
Examples:
  source <(holdfast completion bash)
  holdfast completion bash > /etc/bash_completion.d/holdfast
  holdfast completion zsh > "\${fpath[1]}/_holdfast"`,
    )
    .action((shell: 'bash' | 'zsh') => {
      const commands = completedCommands(command.parent!);
      console.stdout.write(shell === 'bash' ? bashScript(commands) : zshScript(commands));
    });
};
