-- What was recorded of each service, and what its calls take
--
-- toll_share is what all calls take of the processor time, share what the needless ones take.
with by_service as (
  select service, count(distinct host) as hosts, sum(case when "row" = 0 then 1 else 0 end) as runs,
    count(distinct release) as releases, min(day) as first_day, max(day) as last_day,
    sum(cast(calls as decimal(38, 0))) as calls,
    sum(cast(case when "row" = 0 then own_cpu_ns end as decimal(38, 0))) as cpu_ns,
    sum(cast(case when own_cpu_ns is not null then toll_ns end as decimal(38, 0))) as toll_ns,
    sum(cast(case when own_cpu_ns is not null then needless_ns end as decimal(38, 0))) as needless_ns
  from fleet
  group by service
)
select service, hosts, runs, releases, first_day, last_day, calls,
  cast(toll_ns as double) / nullif(cast(cpu_ns as double), 0) as toll_share,
  cast(needless_ns as double) / nullif(cast(cpu_ns as double), 0) as share
from by_service
order by share desc nulls last, service
