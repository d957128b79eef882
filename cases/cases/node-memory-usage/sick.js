// Watches its own memory while it works.
let peak = 0;
for (let i = 0; i < +process.argv[2]; i++) peak = Math.max(peak, process.memoryUsage().rss);
console.log(peak > 0);
