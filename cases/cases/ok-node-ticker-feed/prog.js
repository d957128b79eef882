'use strict';
const http = require('http');

const server = http.createServer((req, res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  let n = 0, price = 1000;
  const t = setInterval(() => {
    price += (n * 37 % 11) - 5;                 // the exchange's tick
    res.write(`id: ${n}\ndata: ${price}\n\n`);
    if (++n === 60) { clearInterval(t); res.end(); }
  }, 20);
});

server.listen(0, '127.0.0.1', () => {
  http.get({ host: '127.0.0.1', port: server.address().port, agent: false }, (res) => {
    let text = '', shown = 0, high = 0;
    res.setEncoding('utf8');
    res.on('data', (d) => {
      text += d;
      let end;
      while ((end = text.indexOf('\n\n')) >= 0) {
        const m = /id: (\d+)\ndata: (\d+)/.exec(text.slice(0, end));
        text = text.slice(end + 2);
        shown++;
        if (+m[2] > high) { high = +m[2]; console.log(`event ${m[1]}: new high ${high}`); }
      }
    });
    res.on('end', () => { console.log(shown, 'events'); server.close(); });
  });
});
