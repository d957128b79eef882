-- Most expensive needless calls over all services
--
-- One line for each service, cause and caller. needless_ns adds up what the recorded runs lost by these calls; share is
-- its part of the processor time of the service's recorded runs, but for runs whose processor time is not known.
with of_service as (
  select service, sum(cast(own_cpu_ns as decimal(38, 0))) as cpu_ns, count(distinct host) as hosts
  from runs
  group by service
), found as (
  select
    fleet.service, fleet.cause, fleet.api, fleet.function, fleet.object,
    count(distinct fleet.host) as hosts,
    sum(cast(needless_calls as decimal(38, 0))) as needless_calls,
    sum(cast(needless_ns as decimal(38, 0))) as needless_ns,
    sum(cast(case when own_cpu_ns is not null then needless_ns end as decimal(38, 0))) as of_cpu_ns
  from fleet cross join asked
  where fleet.cause <> ''
    and (asked.cause is null or fleet.cause = asked.cause or fleet.kind = asked.cause)
    and (asked.api is null or fleet.api = asked.api)
    and (asked.function is null or fleet.function = asked.function)
    and (asked.syscall is null or fleet.syscall = asked.syscall)
    and (asked.release is null or fleet.release = asked.release)
  group by fleet.service, fleet.cause, fleet.api, fleet.function, fleet.object
)
select
  found.service, found.cause, found.api, found.function, found.object,
  found.hosts, of_service.hosts as of_hosts, found.needless_calls, found.needless_ns,
  cast(found.of_cpu_ns as double) / nullif(cast(of_service.cpu_ns as double), 0) as share
from found join of_service on found.service = of_service.service
order by found.needless_ns desc, found.service, found.cause, found.api, found.function, found.object
