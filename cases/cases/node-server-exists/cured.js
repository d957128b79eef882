// Reads them, and would find out.
const fs = require('fs');
require('./server.js').serve((part) => fs.readFileSync(part));
