-- What cures would save at most, in cores and money, if services always ran as they did while recorded
--
-- cores adds up, host by host, the time of needless calls divided by the time that the runs took (wall_ns): a service that
-- runs a tenth of the day saves a tenth of it. A month has 730 hours. Only the calls themselves are counted; what goes with
-- them may add to it or eat it up, and only `systoll prove` tells.
with elapsed as (
  select service, host, sum(cast(wall_ns as decimal(38, 0))) as wall_ns, sum(cast(own_cpu_ns as decimal(38, 0))) as cpu_ns
  from runs
  group by service, host
), lost as (
  select fleet.service, fleet.host, fleet.cause, sum(cast(needless_ns as decimal(38, 0))) as needless_ns
  from fleet cross join asked
  where fleet.cause <> ''
    and (asked.cause is null or fleet.cause = asked.cause or fleet.kind = asked.cause)
    and (asked.api is null or fleet.api = asked.api)
    and (asked.function is null or fleet.function = asked.function)
    and (asked.syscall is null or fleet.syscall = asked.syscall)
    and (asked.release is null or fleet.release = asked.release)
  group by fleet.service, fleet.host, fleet.cause
), by_host as (
  select lost.service, lost.host, lost.cause, lost.needless_ns,
    cast(cast(lost.needless_ns as double) / cast(elapsed.wall_ns as double) as decimal(24, 12)) as cores
  from lost join elapsed on lost.service = elapsed.service and lost.host = elapsed.host
  where elapsed.wall_ns > 0
), told as (
  select service, cause, count(distinct host) as hosts, sum(needless_ns) as needless_ns, sum(cores) as cores
  from by_host
  group by service, cause
  union all
  select '(all)' as service, '(all)' as cause, count(distinct host) as hosts, sum(needless_ns) as needless_ns, sum(cores) as cores
  from by_host
)
select told.service, told.cause, told.hosts, told.needless_ns,
  round(cast(told.cores as double), 6) as cores,
  round(cast(told.cores as double) * 730 * asked.core_hour, 2) as money_month
from told cross join asked
where told.hosts > 0
order by told.cores desc, told.service, told.cause
