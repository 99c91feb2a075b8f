import type { CompletedCommand, CompletedOption } from './command-tree.ts';

/** A completion for zsh: `holdfast completion zsh > "\${fpath[1]}/_holdfast"`. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef holdfast
# Completion of holdfast for zsh. Made by: holdfast completion zsh
_holdfast_locks() {
  local -a names
  names=(\${(f)"$(holdfast completion locks 2>/dev/null </dev/null)"})
  compset -P '*,'
  compadd -a names
}
_holdfast() {
  local context state line
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${escapedColons(summary)}`)}`).join('\n')}
  )
  _arguments -C '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
${commands.map((command) => branch(command, 8)).join('\n')}
      esac ;;
  esac
}
if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

function branch({ name, options, words, subcommands, lock }: CompletedCommand, indent: number): string {
  const space = ' '.repeat(indent);
  const specs = options.flatMap(optionSpecs);
  if (subcommands.length > 0) {
    const inner = subcommands.map((sub) => branch({ ...sub, subcommands: [] }, indent + 4)).join('\n');
    return `${space}${name})
${space}  if (( CURRENT == 2 )); then compadd -- ${words.map(quoted).join(' ')}
${space}  else case $line[2] in
${inner}
${space}  esac; fi ;;`;
  }
  const rest = restSpecs(words, lock);
  return `${space}${name}) _arguments ${[...specs, ...rest].join(' ')} ;;`;
}

function restSpecs(words: readonly string[], lock: CompletedCommand['lock']): string[] {
  const command = quoted('*::command:_normal');
  if (words.length > 0) return [quoted(`1:word:(${words.join(' ')})`)];
  if (lock === 'none') return [command];
  return [quoted('1:lock:_holdfast_locks'), ...(lock === 'before-command' ? [command] : [])];
}

function optionSpecs({ flags, description, takesValue, choices }: CompletedOption): string[] {
  const text = description.replaceAll('[', '(').replaceAll(']', ')').replaceAll(':', ' ');
  const value = !takesValue ? '' : choices.length > 0 ? `:value:(${choices.join(' ')})` : ':value:_files';
  return flags.map((flag) => quoted(`${flag}[${text}]${value}`));
}

function escapedColons(text: string): string {
  return text.replaceAll(':', '\\:');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
