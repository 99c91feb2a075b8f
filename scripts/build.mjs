// `npm run build`: the library by tsc, file for file; the programs (the command, its guardian, the local server) by
// esbuild, since loading a hundred small files takes longer than everything that `holdfast run` does.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { build } from 'esbuild';
import { run } from './setup.mjs';

const licence = readFileSync(new URL('../node_modules/commander/LICENSE', import.meta.url), 'utf8');

/** A program is called main.ts, or ends with -main or -process. Each goes into the folder that starts it by `./`. */
const programs = ['cli', 'daemon'].map((layer) => ({
  folder: `dist/${layer}`,
  entries: readdirSync(`src/${layer}`, { recursive: true })
    .filter((file) => /(^|\/)main\.ts$|-(main|process)\.ts$/.test(file))
    .map((file) => `src/${layer}/${file}`),
}));

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json']);
for (const { folder, entries } of programs) {
  rmSync(new URL(`../${folder}`, import.meta.url), { recursive: true, force: true });
  await build({
    entryPoints: entries,
    outdir: folder,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.15',
    minifySyntax: true,
    minifyWhitespace: true,
    sourcemap: true,
    logLevel: 'warning',
    banner: {
      // Packages of the older kind, such as commander, ask for Node's modules by `require`.
      js: `/*! Holdfast, with commander:\n${licence}*/\nimport{createRequire}from'node:module';const require=createRequire(import.meta.url);`,
    },
  });
}
