-- Hosts that differ from their peers: time zone, libc, kernel, clock, processor, release
--
-- Peers are the hosts that run the same service, three at least; of each counts what its latest run tells. usual is the
-- value that two thirds of them have. Lists hosts whose value is shared by at most a fifth of their peers, or by none; services
-- says in how many services. share is what its needless calls take of the processor time of its runs of these services,
-- peers_share the same of its peers' runs.
with of_runs as (
  -- One look at the files, at the columns that are wanted: an engine keeps something of each file, look and column.
  -- What is said of a run is the same in all its lines.
  select day, service, host, run, max(started_unix) as started_unix, max(time_zone) as time_zone, max(libc) as libc,
    max(kernel) as kernel, max(clock_source) as clock_source, max(cpu) as cpu, max(release) as release,
    max(own_cpu_ns) as cpu_ns, sum(cast(needless_ns as decimal(38, 0))) as needless_ns
  from fleet
  group by day, service, host, run
), latest as (
  select service, host, time_zone, libc, kernel, clock_source, cpu, release,
    row_number() over (partition by service, host order by started_unix desc, run desc) as place
  from of_runs
), facts as (
  select service, host, 'time zone' as fact, time_zone as value from latest where place = 1 and time_zone <> ''
  union all
  select service, host, 'libc' as fact, libc as value from latest where place = 1 and libc <> ''
  union all
  select service, host, 'kernel' as fact, kernel as value from latest where place = 1 and kernel <> ''
  union all
  select service, host, 'clock' as fact,
    case when clock_source in ('tsc', 'kvm-clock', 'hyperv_clocksource_tsc_page') then clock_source
      else concat(clock_source, ' (no vDSO)') end as value
  from latest where place = 1 and clock_source <> ''
  union all
  select service, host, 'processor' as fact, cpu as value from latest where place = 1 and cpu <> ''
  union all
  select service, host, 'release' as fact, release as value from latest where place = 1 and release <> ''
), counted as (
  select service, fact, value, count(*) as hosts from facts group by service, fact, value
), ordered as (
  select service, fact, value, hosts, sum(hosts) over (partition by service, fact) as of_hosts,
    row_number() over (partition by service, fact order by hosts desc, value) as place
  from counted
), usual as (
  select service, fact, value, hosts from ordered where place = 1 and of_hosts >= 3 and hosts * 3 >= of_hosts * 2
), odd as (
  select facts.host, facts.fact, facts.value, usual.value as usual, facts.service, usual.hosts as peers
  from facts
    join usual on facts.service = usual.service and facts.fact = usual.fact
    join ordered on facts.service = ordered.service and facts.fact = ordered.fact and facts.value = ordered.value
  where facts.value <> usual.value and (ordered.hosts * 5 <= ordered.of_hosts or ordered.hosts = 1)
), of_hosts as (
  select service, host, coalesce(sum(needless_ns), 0) as needless_ns, sum(cast(cpu_ns as decimal(38, 0))) as cpu_ns
  from of_runs where cpu_ns is not null group by service, host
), of_services as (
  select service, sum(needless_ns) as needless_ns, sum(cpu_ns) as cpu_ns from of_hosts group by service
)
select odd.host, odd.fact, odd.value, odd.usual, count(*) as services, max(odd.peers) as peers,
  cast(sum(of_hosts.needless_ns) as double) / nullif(cast(sum(of_hosts.cpu_ns) as double), 0) as share,
  cast(sum(of_services.needless_ns - of_hosts.needless_ns) as double)
    / nullif(cast(sum(of_services.cpu_ns - of_hosts.cpu_ns) as double), 0) as peers_share
from odd
  left join of_hosts on odd.service = of_hosts.service and odd.host = of_hosts.host
  left join of_services on odd.service = of_services.service
group by odd.host, odd.fact, odd.value, odd.usual
order by services desc, odd.host, odd.fact, odd.value, odd.usual
