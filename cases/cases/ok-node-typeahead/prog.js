'use strict';
// Search as you type: asks when the user (another process) has paused for 110 ms.
const { spawn } = require('child_process');

if (process.argv[2] === 'user') {
  const keys = [['s', 30], ['y', 25], ['s', 30], [' ', 220], ['c', 35], ['a', 25], ['l', 30], ['l', 240],
    ['s', 30], ['!', 210]];
  (async () => {
    for (const [k, pause] of keys) {
      process.stdout.write(k);
      await new Promise((r) => setTimeout(r, pause));
    }
  })();
} else {
  const words = ['system', 'sys call', 'sys calls', 'sys calls! and more', 'sysadmin'];
  let text = '';
  let timer = null;
  const search = () => {
    timer = null;
    console.log(JSON.stringify(text), words.filter((w) => w.startsWith(text)).length);
  };
  const user = spawn(process.execPath, [__filename, 'user'], { stdio: ['ignore', 'pipe', 'inherit'] });
  user.stdout.on('data', (d) => {
    text += d;
    clearTimeout(timer);
    timer = setTimeout(search, 110);
  });
}
