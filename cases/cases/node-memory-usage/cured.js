// Watches its own memory now and then.
let peak = 0;
for (let i = 0; i < +process.argv[2]; i += 1000) peak = Math.max(peak, process.memoryUsage().rss);
console.log(peak > 0);
