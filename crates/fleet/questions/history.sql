-- Calls by day and release: all, or those that --cause, --api, --function and --syscall pick
--
-- runs says how many of the day's runs made such calls, hosts on how many hosts. calls_per_cpu_second divides the calls
-- by the processor time of all of the day's runs, so that busy days and quiet ones compare; share is what the needless
-- ones of them took of it.
with of_day as (
  select day, service, release, count(*) as runs, sum(cast(own_cpu_ns as decimal(38, 0))) as cpu_ns
  from runs
  group by day, service, release
), made as (
  select fleet.day, fleet.service, fleet.release,
    count(distinct fleet.run) as runs, count(distinct fleet.host) as hosts,
    sum(cast(calls as decimal(38, 0))) as calls,
    sum(cast(case when own_cpu_ns is not null then calls end as decimal(38, 0))) as of_cpu_calls,
    sum(cast(needless_calls as decimal(38, 0))) as needless_calls,
    sum(cast(case when own_cpu_ns is not null then needless_ns end as decimal(38, 0))) as needless_ns
  from fleet cross join asked
  where (asked.cause is null or fleet.cause = asked.cause or fleet.kind = asked.cause)
    and (asked.api is null or fleet.api = asked.api)
    and (asked.function is null or fleet.function = asked.function)
    and (asked.syscall is null or fleet.syscall = asked.syscall)
    and (asked.release is null or fleet.release = asked.release)
  group by fleet.day, fleet.service, fleet.release
)
select made.day, made.service, made.release, made.hosts, made.runs, of_day.runs as of_runs, made.calls,
  cast(made.of_cpu_calls as double) * 1e9 / nullif(cast(of_day.cpu_ns as double), 0) as calls_per_cpu_second,
  made.needless_calls,
  cast(made.needless_ns as double) / nullif(cast(of_day.cpu_ns as double), 0) as share
from made join of_day
  on made.day = of_day.day and made.service = of_day.service and made.release = of_day.release
order by made.service, made.day, made.release
