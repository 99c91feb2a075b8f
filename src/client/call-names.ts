const calls: Readonly<Record<string, string>> = {
  create2: 'create',
  createContainer: 'create',
  createTtl: 'create',
  getData: 'get',
  setData: 'set',
  getChildren: 'children',
  getChildren2: 'childrenWithStat',
  getAllChildrenNumber: 'countDescendants',
  getEphemerals: 'ephemerals',
};

/** The method that a caller knows an operation by. */
export function callOf(operation: string): string {
  return calls[operation] ?? operation;
}
