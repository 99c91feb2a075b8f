import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeFolders } from './make-folders.ts';

test('folders are made for their owner, with those above them, and may be there already', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-make-'));
  try {
    const path = join(folder, 'a', 'b');
    makeFolders(path);
    makeFolders(path);
    expect([path, join(folder, 'a')].map((each) => statSync(each).mode & 0o777)).toEqual([0o700, 0o700]);
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => makeFolders(file)).toThrow(/EEXIST/);
    expect(() => makeFolders(join(file, 'below'))).toThrow(/ENOTDIR/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('where a file system takes none, that is an error, and no endless loop', () => {
  expect(() => makeFolders('/proc/holdfast/data')).toThrow(/ENOENT|EACCES|EROFS/);
});
