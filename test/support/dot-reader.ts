/** Reads what `holdfast graph --dot` writes, strictly enough that a broken quote is an error. */
export function parseDot(text: string): {
  nodes: string[];
  edges: [from: string, to: string, label: string][];
} {
  const quoted = '"((?:[^"\\\\]|\\\\.)*)"';
  const attributes = `\\[label=${quoted}(?:, (?:color=red|style=dashed))*\\]`;
  const node = new RegExp(`^ {2}${quoted} ${attributes};$`);
  const edge = new RegExp(`^ {2}${quoted} -> ${quoted} ${attributes};$`);
  const nodes: string[] = [];
  const edges: [string, string, string][] = [];
  const [first, rank, shape, ...lines] = text.trimEnd().split('\n');
  if (`${first}${rank}${shape}${lines.pop()}` !== 'digraph waits {  rankdir=LR;  node [shape=box];}') {
    throw new Error(`no graph of waits: ${text}`);
  }
  for (const line of lines) {
    const asEdge = edge.exec(line);
    const asNode = node.exec(line);
    if (asEdge) edges.push([asEdge[1]!, asEdge[2]!, asEdge[3]!]);
    else if (asNode) nodes.push(asNode[1]!);
    else throw new Error(`neither a node nor an edge: ${line}`);
  }
  return { nodes, edges };
}
