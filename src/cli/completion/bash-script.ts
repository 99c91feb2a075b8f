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
            (flag) =>
              `    ${quoted(`${path} ${flag}`)}) COMPREPLY=($(compgen -W ${quoted(option.choices.join(' '))} -- "$current")); return ;;`,
          )
        : [],
    ),
  );
  const valued = all.flatMap(({ path, command: { options } }) =>
    options.flatMap((option) =>
      option.takesValue ? option.flags.map((flag) => quoted(`${path} ${flag}`)) : [],
    ),
  );
  const locked = all.flatMap(({ path, command: { lock } }) => (lock === 'none' ? [] : [quoted(path)]));
  return `# Completion of holdfast for bash. Made by: holdfast completion bash
_holdfast_takes_value() {
  case "$1" in
    ${valued.join('|')}) return 0 ;;
  esac
  return 1
}
# Names only as they are, never as shell text: anybody may have chosen them.
_holdfast_locks() {
  local before='' name
  [[ "$1" == *,* ]] && before="\${1%,*},"
  while IFS= read -r name; do
    [[ "$before$name" == "$1"* ]] && COMPREPLY+=("$before$name")
  done < <("\${COMP_WORDS[0]}" completion locks 2>/dev/null </dev/null)
}
_holdfast() {
  local current previous path words word index earlier given
  current="\${COMP_WORDS[COMP_CWORD]}"
  previous="\${COMP_WORDS[COMP_CWORD-1]}"
  words=''
  path=''
  given=0
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    # Behind -- and behind the lock of run and elect, it is another command's turn.
    if [[ "$word" == -- ]]; then COMPREPLY=($(compgen -c -- "$current")); return; fi
    earlier="\${COMP_WORDS[index-1]}"
    if [[ -n "$path" && "$word" != -* ]] && ! _holdfast_takes_value "$path $earlier"; then given=1; fi
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
  esac
  if _holdfast_takes_value "$path $previous"; then COMPREPLY=($(compgen -f -- "$current")); return; fi
  case "$path" in
    ${locked.join('|')}) if [[ $given == 0 && "$current" != -* ]]; then _holdfast_locks "$current"; return; fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _holdfast holdfast
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
