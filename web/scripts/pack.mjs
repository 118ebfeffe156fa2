// Compresses the built page beside itself, says what it weighs, and fails above the budget.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const BUDGET = 700_000;

const files = directory =>
  readdirSync(directory).flatMap(name => {
    const path = join(directory, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });

let total = 0;
for (const path of files('dist/page')) {
  const packed = gzipSync(readFileSync(path), { level: 9 });
  writeFileSync(`${path}.gz`, packed);
  total += packed.length;
  if (packed.length > 5_000) console.log(`${(packed.length / 1_000).toFixed(1).padStart(8)} KB  ${path}`);
}
console.log(
  `${(total / 1_000).toFixed(1).padStart(8)} KB  compressed in all, of ${BUDGET / 1_000} KB allowed`,
);
if (total > BUDGET) process.exit(1);
