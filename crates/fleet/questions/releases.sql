-- Releases of each service, in the order in which they came
with of_runs as (
  select service, release, min(started_unix) as began, min(day) as first_day, max(day) as last_day, count(*) as runs,
    count(distinct host) as hosts, sum(cast(own_cpu_ns as decimal(38, 0))) as cpu_ns
  from runs
  group by service, release
), of_rows as (
  select service, release, sum(cast(case when own_cpu_ns is not null then needless_ns end as decimal(38, 0))) as needless_ns
  from fleet
  group by service, release
)
select of_runs.service, of_runs.release, first_day, last_day, hosts, runs,
  cast(needless_ns as double) / nullif(cast(cpu_ns as double), 0) as share
from of_runs join of_rows on of_runs.service = of_rows.service and of_runs.release = of_rows.release
order by of_runs.service, began, of_runs.release
