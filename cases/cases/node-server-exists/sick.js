// A server that asks whether the parts of its page are there before it reads them.
const fs = require('fs');
require('./server.js').serve((part) => fs.existsSync(part) ? fs.readFileSync(part) : '');
