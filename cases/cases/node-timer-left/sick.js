'use strict';
// A health check: each target has 1.5 s to answer.
const http = require('http');

function withTimeout(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no answer in ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]);
}

function check(port, path) {
  return new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, path, agent: false }, (res) => {
      let body = '';
      res.on('data', (d) => { body += d; });
      res.on('end', () => resolve(`${res.statusCode} ${body}`));
    }).on('error', reject);
  });
}

const server = http.createServer((req, res) => {
  setTimeout(() => res.end(`up ${req.url.length}`), 8); // looks at its database
});

server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address();
  const paths = ['/db', '/cache', '/queue', '/search', '/mailer'];
  const all = await Promise.all(paths.map((p) => withTimeout(check(port, p), 1500, p)));
  paths.forEach((p, i) => console.log(p, all[i]));
  server.close();
});
