// Appends all lines to a log.
const fs = require('fs');
const lines = [];
for (let i = 0; i < +process.argv[2]; i++) lines.push(`line ${i}\n`);
fs.appendFileSync('bin/log', lines.join(''));
console.log(fs.statSync('bin/log').size);
