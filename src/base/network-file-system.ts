/** What `statfs` calls file systems that several machines may have open at once: NFS, SMB, 9P, FUSE, Ceph, and the like. */
const NETWORK_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997, 0x65735546, 0x00c36400, 0x5346414f, 0x0bd00bd0,
  0x01161970, 0x7461636f, 0x47504653, 0x786f4256,
]);

/** Whether another machine may have the file system open, by the `type` that `statfs` gives. Linux's numbers only. */
export function isNetworkFileSystem(type: number): boolean {
  return NETWORK_FILE_SYSTEMS.has(type);
}
