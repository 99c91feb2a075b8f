import type { CompletedCommand } from './command-tree.ts';

/** A completion for bash: `holdfast completion bash > /etc/bash_completion.d/holdfast`. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  const all = commands.flatMap((command) => [
    { path: command.name, command },
    ...command.subcommands.map((sub) => ({ path: `${command.name} ${sub.name}`, command: sub })),
  ]);
  const cases = all.map(({ path, command: { options, words } }) => {
    const flags = options.flatMap((option) => option.flags);
    return `    ${quoted(path)}) words=${quoted([...words, ...flags].join(' '))} ;;`;
  });
  const choices = all.flatMap(({ path, command: { options } }) =>
    options.flatMap((option) =>
      option.choices.length > 0
        ? option.flags.map(
            (flag) => `    ${quoted(`${path} ${flag}`)}) words=${quoted(option.choices.join(' '))} ;;`,
          )
        : [],
    ),
  );
  const valued = all.flatMap(({ path, command: { options } }) =>
    options.flatMap((option) =>
      option.takesValue && option.choices.length === 0
        ? option.flags.map((flag) => quoted(`${path} ${flag}`))
        : [],
    ),
  );
  return `# Completion of holdfast for bash. Made by: holdfast completion bash
_holdfast() {
  local current previous path words word index
  current="\${COMP_WORDS[COMP_CWORD]}"
  previous="\${COMP_WORDS[COMP_CWORD-1]}"
  words=''
  path=''
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    # Behind -- and behind the lock of run and elect, it is another command's turn.
    if [[ "$word" == -- ]]; then COMPREPLY=($(compgen -c -- "$current")); return; fi
    case "$path $word" in
${all.map(({ path }) => `      ${quoted(path.includes(' ') ? path : ` ${path}`)}) path=${quoted(path)} ;;`).join('\n')}
    esac
  done
  case "$path" in
    '') words=${quoted([...commands.map(({ name }) => name), 'help', '--help', '--version'].join(' '))} ;;
${cases.join('\n')}
  esac
  case "$path $previous" in
${choices.join('\n')}
    ${valued.join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _holdfast holdfast
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
