// Reads configuration, if it is there.
const fs = require('fs');
let total = 0;
for (let i = 0; i < +process.argv[2]; i++) {
  const name = `bin/conf${i % 10}`;
  if (fs.existsSync(name) && fs.statSync(name).isFile()) total += fs.readFileSync(name).length;
}
console.log(total);
