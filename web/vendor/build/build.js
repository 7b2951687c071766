// Bundles entry.js into ../d3.js, with the licences in ../d3.LICENSE; --check compares both with what is there.

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { outputFiles, metafile } = await build({
  entryPoints: [here("entry.js")],
  absWorkingDir: here("."),
  bundle: true,
  alias: { "d3-interpolate": here("still.js"), "d3-transition": here("still.js") },
  format: "esm",
  minify: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
  metafile: true,
  write: false,
});

const paths = Object.keys(metafile.inputs).filter((path) => path.startsWith("node_modules/"));
const folders = new Set(paths.map((path) => path.split("/", 2).join("/")));
const packages = await Promise.all([...folders].sort().map(async (folder) => {
  const { name, version } = JSON.parse(await readFile(here(`${folder}/package.json`), "utf8"));
  return { title: `${name} ${version}`, licence: (await readFile(here(`${folder}/LICENSE`), "utf8")).trim() };
}));
const texts = [...new Set(packages.map(({ licence }) => licence))];
const licences = texts.map((text) => {
  const titles = packages.filter(({ licence }) => licence === text).map(({ title }) => title);
  return `${titles.join(", ")}\n\n${text}\n`;
}).join(`\n${"-".repeat(80)}\n\n`);
const banner = `/*!\n${licences}\nBuilt by build/.\n*/\n`;

const built = { "../d3.js": banner + outputFiles[0].text, "../d3.LICENSE": licences };
for (const [path, text] of Object.entries(built)) {
  if (!process.argv.includes("--check")) {
    await writeFile(here(path), text);
  } else if (text !== await readFile(here(path), "utf8")) {
    console.error(`${path} is not what the build makes: run npm run build`);
    process.exitCode = 1;
  }
}
