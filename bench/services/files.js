// An HTTP server that reads a file for each request: PORT FILE.
const fs = require('fs');
const http = require('http');
http
  .createServer((request, response) => {
    fs.readFile(process.argv[3], (error, data) => {
      response.statusCode = error ? 500 : 200;
      response.end(error ? String(error) : `${data.length} bytes\n`);
    });
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
