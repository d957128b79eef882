-- Releases of each service, in the order in which they came
with by_release as (
  select service, release, min(started_unix) as began, min(day) as first_day, max(day) as last_day,
    sum(case when "row" = 0 then 1 else 0 end) as runs, count(distinct host) as hosts,
    sum(cast(case when "row" = 0 then own_cpu_ns end as decimal(38, 0))) as cpu_ns,
    sum(cast(case when own_cpu_ns is not null then needless_ns end as decimal(38, 0))) as needless_ns
  from fleet
  group by service, release
)
select service, release, first_day, last_day, hosts, runs,
  cast(needless_ns as double) / nullif(cast(cpu_ns as double), 0) as share
from by_release
order by service, began, release
