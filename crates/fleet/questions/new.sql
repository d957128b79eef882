-- Needless calls that grew with a release
--
-- Compares each service's runs of a release (--release, else its newest) and of those that began after it with its runs of
-- earlier ones. Listed are causes and callers whose part of the processor time has at least doubled and is now a
-- thousandth or more: before_share is that part before, share since. more_ns is the time that the difference comes to.
with began as (
  select service, release, min(started_unix) as first_unix, sum(cast(own_cpu_ns as decimal(38, 0))) as cpu_ns
  from runs
  group by service, release
), candidates as (
  select began.service, began.release, began.first_unix,
    row_number() over (partition by began.service order by began.first_unix desc, began.release desc) as place
  from began cross join asked
  where began.release <> '' and (asked.release is null or began.release = asked.release)
), since as (
  select service, release, first_unix from candidates where place = 1
), sides as (
  select began.service, began.release, began.cpu_ns, since.release as since_release,
    case when began.first_unix >= since.first_unix then 1 else 0 end as is_new
  from began join since on began.service = since.service
), cpu as (
  select service, sum(case when is_new = 1 then cpu_ns end) as new_ns, sum(case when is_new = 0 then cpu_ns end) as old_ns
  from sides
  group by service
), needless as (
  select sides.service, sides.since_release, fleet.cause, fleet.api, fleet.function,
    count(distinct case when is_new = 1 then fleet.host end) as hosts,
    sum(cast(case when is_new = 1 then needless_calls else 0 end as decimal(38, 0))) as needless_calls,
    sum(cast(case when is_new = 1 and own_cpu_ns is not null then needless_ns else 0 end as decimal(38, 0))) as new_ns,
    sum(cast(case when is_new = 0 and own_cpu_ns is not null then needless_ns else 0 end as decimal(38, 0))) as old_ns
  from fleet join sides on fleet.service = sides.service and fleet.release = sides.release cross join asked
  where fleet.cause <> ''
    and (asked.cause is null or fleet.cause = asked.cause or fleet.kind = asked.cause)
    and (asked.api is null or fleet.api = asked.api)
    and (asked.function is null or fleet.function = asked.function)
    and (asked.syscall is null or fleet.syscall = asked.syscall)
  group by sides.service, sides.since_release, fleet.cause, fleet.api, fleet.function
), shares as (
  select needless.*,
    cast(needless.old_ns as double) / cast(cpu.old_ns as double) as before_share,
    cast(needless.new_ns as double) / cast(cpu.new_ns as double) as share,
    cast(cpu.new_ns as double) as cpu_ns
  from needless join cpu on needless.service = cpu.service
  where cpu.old_ns > 0 and cpu.new_ns > 0
)
select service, since_release as release, cause, api, function, hosts, needless_calls, before_share, share,
  (share - before_share) * cpu_ns as more_ns
from shares
where share >= 2 * before_share and share >= 0.001
order by more_ns desc, service, cause, api, function
