//! Describes this box.

use crate::arch;
use std::fs;
use std::io::Read;
use std::sync::OnceLock;
use systoll_model::Host;

/// Largest size of one processor's description, bytes; that of the newest has 2 KB.
const FIRST_PROCESSOR: u64 = 4096;

/// Returns the processor, the kernel, the clock source and the hypervisor. A part that can't be
/// read is empty.
pub fn host() -> Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(read_host).clone()
}

fn read_host() -> Host {
    let cpuinfo = cpuinfo(FIRST_PROCESSOR);
    let read = |path: &str| fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default();
    Host {
        cpu: arch::processor(&cpuinfo),
        cpus: online(&read("/sys/devices/system/cpu/online"))
            .unwrap_or_else(|| self::cpuinfo(u64::MAX).lines().filter(|l| l.starts_with("processor")).count() as u32),
        kernel: read("/proc/sys/kernel/osrelease"),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtualization: arch::virtualization(&cpuinfo),
        page: page_bytes(),
    }
}

/// Returns the first bytes of /proc/cpuinfo. The kernel takes some ten microseconds for each
/// processor, and all are alike.
fn cpuinfo(most: u64) -> String {
    let mut bytes = Vec::new();
    // A file that can't be read counts as empty.
    let _ = fs::File::open("/proc/cpuinfo").and_then(|file| file.take(most).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn cpuinfo_field(cpuinfo: &str, name: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|l| l.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Counts the processors in a list such as `0-3,8`.
fn online(list: &str) -> Option<u32> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .try_fold(0u32, |sum, n| sum.checked_add(n?))
}

/// Returns the size of a page of memory, bytes.
fn page_bytes() -> u64 {
    // SAFETY: sysconf takes a number and returns one.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0)
}

/// Returns the name of a hypervisor with the product's name that the firmware gives.
pub(crate) fn with_product(hypervisor: String) -> String {
    match product() {
        Some(product) if !product.eq_ignore_ascii_case(&hypervisor) => format!("{product}, {hypervisor}"),
        _ => hypervisor,
    }
}

/// Returns the name of a hypervisor by its CPUID signature, from its documentation.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only x86-64 has CPUID"))]
pub(crate) fn hypervisor(signature: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(signature)
        .chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .collect::<String>()
        .trim()
        .to_owned();
    let name = match text.as_str() {
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU without KVM",
        "VBoxVBoxVBox" => "VirtualBox",
        "bhyve bhyve" => "bhyve",
        "prl hyperv" | "lrpepyh vr" => "Parallels",
        "ACRNACRNACRN" => "ACRN",
        "QNXQVMBSQG" => "QNX",
        "" => "unknown hypervisor",
        other => return format!("hypervisor `{other}`"),
    };
    name.to_owned()
}

/// Returns the firmware's name of the machine, if it says more than the hypervisor's name.
fn product() -> Option<String> {
    // Firecracker has no DMI; the OEM id of its ACPI tables (bytes 10 to 15) is its name.
    let acpi = ["FACP", "DSDT"].iter().find_map(|t| fs::read(format!("/sys/firmware/acpi/tables/{t}")).ok());
    if acpi.as_deref().and_then(|t| t.get(10..16)) == Some(b"FIRECK") {
        return Some("Firecracker".to_owned());
    }
    let dmi = |name: &str| fs::read_to_string(format!("/sys/class/dmi/id/{name}")).ok();
    product_of(dmi("sys_vendor")?.trim(), dmi("product_name").unwrap_or_default().trim())
}

fn product_of(vendor: &str, product: &str) -> Option<String> {
    let short = match vendor {
        "Amazon EC2" | "Google" | "DigitalOcean" | "Hetzner" | "OpenStack Foundation" | "Alibaba Cloud" => vendor,
        "QEMU" => return Some("QEMU".to_owned()),
        "Microsoft Corporation" | "VMware, Inc." | "innotek GmbH" | "Xen" | "" => return None,
        _ => return Some(if product.is_empty() { vendor.to_owned() } else { product.to_owned() }),
    };
    Some(if product.is_empty() || product.contains(short) { short.to_owned() } else { format!("{short} {product}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_box_has_a_processor_and_a_kernel() {
        let host = host();
        assert!(host.cpus >= 1);
        assert!(host.kernel.chars().next().is_some_and(|c| c.is_ascii_digit()));
    }

    #[test]
    fn processors_are_counted() {
        assert_eq!(online("0"), Some(1));
        assert_eq!(online("0-3,8"), Some(5));
        assert_eq!(online(""), None);
        assert_eq!(online("3-1"), None);
        assert_eq!(online("0-4294967295"), None);
    }

    #[test]
    fn hypervisors_have_names() {
        assert_eq!(hypervisor(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(hypervisor(b"bhyve bhyve "), "bhyve");
        assert_eq!(hypervisor(&[0; 12]), "unknown hypervisor");
        assert_eq!(hypervisor(b"NewOneNewOne"), "hypervisor `NewOneNewOne`");
        assert_eq!(arch::virtualization("flags\t: fpu vme\n"), None);
    }

    #[test]
    fn products_have_names() {
        assert_eq!(product_of("Amazon EC2", "m7a.large").as_deref(), Some("Amazon EC2 m7a.large"));
        assert_eq!(product_of("Google", "Google Compute Engine").as_deref(), Some("Google"));
        assert_eq!(product_of("Microsoft Corporation", "Virtual Machine"), None);
    }
}
