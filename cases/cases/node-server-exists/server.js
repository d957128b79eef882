// Answers N requests of its own over kept connections, each with eight files that `read` reads.
const http = require('http');
const PARTS = [1, 2, 3, 4, 5, 6, 7, 8].map((i) => 'bin/part' + i);
exports.serve = (read) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const n = +process.argv[2];
  let left = n, done = 0;
  const server = http.createServer((q, r) => r.end(PARTS.map(read).join(''))).listen(0, () => {
    const ask = () => {
      if (left-- <= 0) return;
      http.get({ port: server.address().port, path: '/', agent }, (r) => {
        r.resume();
        r.on('end', () => { if (++done == n) { console.log(done); agent.destroy(); server.close(); } else ask(); });
      });
    };
    for (let i = 0; i < 4; i++) ask();
  });
};
