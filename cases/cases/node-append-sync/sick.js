// Appends each line to a log.
const fs = require('fs');
for (let i = 0; i < +process.argv[2]; i++) fs.appendFileSync('bin/log', `line ${i}\n`);
console.log(fs.statSync('bin/log').size);
