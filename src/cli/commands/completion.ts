import { Argument } from 'commander';
import { bashScript } from '../completion/bash-script.ts';
import { completedCommands } from '../completion/command-tree.ts';
import { lockNames } from '../completion/lock-names.ts';
import { zshScript } from '../completion/zsh-script.ts';
import type { DefineCommand } from '../define-command.ts';
import { printLines } from '../print.ts';

/** Prints what makes a shell complete our commands and options. */
export const define: DefineCommand = (command, { console }) => {
  command
    .addArgument(
      new Argument('<shell>', 'which shell; locks prints the names that the scripts offer').choices([
        'bash',
        'zsh',
        'locks',
      ]),
    )
    .addHelpText(
      'after',
      `
Examples:
  source <(holdfast completion bash)
  holdfast completion bash > /etc/bash_completion.d/holdfast
  holdfast completion zsh > "\${fpath[1]}/_holdfast"`,
    )
    .action(async (shell: 'bash' | 'zsh' | 'locks') => {
      if (shell === 'locks') return printLines(console, await lockNames(console.env));
      const commands = completedCommands(command.parent!);
      console.stdout.write(shell === 'bash' ? bashScript(commands) : zshScript(commands));
    });
};
