#!/usr/bin/env bash
# licences.sh BUNDLED prints the licences of the packages in a bundle, which esbuild lists in the file BUNDLED. It fails
# if a package has another licence than MIT, or no text of it.
set -euo pipefail

node -e '
const fs = require("node:fs"), path = require("node:path");
const inputs = Object.keys(JSON.parse(fs.readFileSync(process.argv[1])).inputs);
const packages = new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []));
for (const folder of [...packages].sort()) {
  const { name, version, license } = JSON.parse(fs.readFileSync(path.join(folder, "package.json")));
  const file = fs.readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (license !== "MIT" || !file) throw new Error(`${name}: the licence is ${license}, in the file ${file}; only MIT is expected`);
  console.log(`${name} ${version}\n\n${fs.readFileSync(path.join(folder, file), "utf8").trim()}\n\n${"-".repeat(72)}\n`);
}' "$1"
