# serve.sh DIRECTIVE N: starts nginx on a free place, asks it N times, stops it.
d=$PWD/data
printf 'daemon off; master_process off; pid %s/pid; error_log /dev/null; events {} http {
  log_format short "$uri"; access_log %s/$host.log short; %s
  client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/c;
  server { listen 127.0.0.1:18931; location / { return 204; } } }' "$d" "$d" "$1" "$d" "$d" "$d" "$d" "$d" > "$d/conf"
nginx -c "$d/conf" &
pid=$!
until ab -n 1 http://127.0.0.1:18931/ >/dev/null 2>&1; do sleep 0.05; done
ab -k -n "$2" -c 4 http://127.0.0.1:18931/ 2>/dev/null | grep Complete
kill -QUIT $pid
wait $pid
