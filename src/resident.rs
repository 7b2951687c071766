//! How much memory stays with the process: when the allocator gives it back, and what is given back at rest.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// mimalloc returns memory to the system after a large ingest; the default allocator does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// purge_delay of `mimalloc.h`, which the bindings don't name: after how many milliseconds freed memory goes back to the
/// system. The default of one second keeps a third more.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
const PURGE_AFTER_MS: std::ffi::c_long = 50;

/// How often it is seen whether the process is at rest.
const INTERVAL: Duration = Duration::from_secs(1);
/// CPU time in an interval up to which it is.
const REST: Duration = Duration::from_millis(10);
/// CPU time after which it pays to give memory back again.
const WORK: Duration = Duration::from_secs(1);

/// Call before other threads are started.
pub fn tune() {
    // SAFETY: the option exists in the linked version, and setting one is allowed at any time.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_AFTER_MS);
    }
}

/// Gives memory back whenever the process comes to rest after some work. Never returns.
///
/// Without it a memory of 10,000 notes keeps 149 MB at rest instead of 112 MB.
pub async fn give_back_at_rest() {
    let (mut given, mut before) = (cpu_time(), cpu_time());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = cpu_time();
        if now.saturating_sub(before) <= REST && now.saturating_sub(given) >= WORK {
            give_back();
            given = now;
        }
        before = now;
    }
}

/// CPU time of the process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns memory that is no longer needed; the allocator itself would wait for further activity.
pub fn give_back() {
    // SAFETY: the first is allowed at any time and on any thread; the callback takes what dl_iterate_phdr(3) passes, and no
    // data.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_collect(true);
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        libc::dl_iterate_phdr(Some(unmap_constant_pages), std::ptr::null_mut());
    }
}

/// Unmaps code and constants of the first object reported, which is the program. For every page used the kernel maps
/// 64 KiB, so after a start, or some work, most of the program is resident. What is used later is mapped again from the page cache.
///
/// Without it a memory of 10,000 notes keeps 192 MB at rest instead of 112 MB, and an empty one 116 instead of 83 MB.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[allow(unsafe_code)]
unsafe extern "C" fn unmap_constant_pages(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    const STOP: libc::c_int = 1;
    let page = rustix::param::page_size() as u64;
    // SAFETY: the dynamic linker passes a valid object with as many headers as it says. Pages of segments that are not
    // writable were never written (relocations write to writable segments only, even to those that are protected
    // afterwards), so the kernel reads the same bytes from the file again.
    unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
        for header in headers {
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0 {
                let first = object.dlpi_addr + header.p_vaddr;
                let start = first.next_multiple_of(page);
                let end = (first + header.p_filesz) / page * page;
                let length = end.saturating_sub(start) as usize;
                libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED);
            }
        }
    }
    STOP
}
