// A server answers its own requests over kept connections.
const http = require('http');
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
let left = +process.argv[2], done = 0;
const server = http.createServer((q, r) => r.end('hello ' + q.url)).listen(0, () => {
  const ask = () => {
    if (left-- <= 0) return;
    http.get({ port: server.address().port, path: '/' + left, agent }, (r) => {
      r.resume();
      r.on('end', () => { if (++done == +process.argv[2]) { console.log(done); agent.destroy(); server.close(); } else ask(); });
    });
  };
  for (let i = 0; i < 8; i++) ask();
});
