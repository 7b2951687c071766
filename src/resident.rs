//! How much memory stays with the process: options of the allocator, and what is given back.

use std::time::Duration;

/// mimalloc returns memory to the system after a large ingest; the default allocator does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type AllocatorOption = (libmimalloc_sys::mi_option_t, std::ffi::c_long);

/// How the allocator treats freed memory: options of `mimalloc.h`, most of which the bindings don't name.
const ALLOCATOR_OPTIONS: &[AllocatorOption] = &[
    // purge_delay: return memory to the system after 50 ms; the default of one second keeps a third more.
    (15, 50),
    // page_reclaim_on_free: reuse memory freed by another thread at once.
    (35, 1),
    // page_full_retain: keep no full pages in reserve.
    (36, 0),
];

/// arena_purge_mult: purge whole pages immediately. The default, ten times the delay, keeps a tenth more of all memory but
/// makes the start faster.
const ONCE_STARTED: &[AllocatorOption] = &[(24, 0)];

/// How often it is seen whether the process is at rest.
const INTERVAL: Duration = Duration::from_secs(1);
/// CPU time in an interval up to which it is.
const REST: Duration = Duration::from_millis(10);
/// CPU time after which it pays to give memory back again.
const WORK: Duration = Duration::from_secs(1);

/// Call before other threads are started.
pub fn tune() {
    tell_allocator(ALLOCATOR_OPTIONS);
}

/// Call once a local service has started.
pub fn tune_further() {
    tell_allocator(ONCE_STARTED);
}

/// Gives memory back whenever the process comes to rest after some work. Never returns.
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
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the place that it is given.
    #[allow(unsafe_code)]
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    match (done, u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec)) {
        (0, Ok(seconds), Ok(nanoseconds)) => Duration::new(seconds, nanoseconds),
        _ => Duration::ZERO,
    }
}

fn tell_allocator(options: &[AllocatorOption]) {
    for (option, value) in options {
        // SAFETY: the options exist in the linked version, and setting one is allowed at any time.
        #[allow(unsafe_code)]
        unsafe {
            libmimalloc_sys::mi_option_set(*option, *value);
        }
    }
}

/// Returns memory that is no longer needed; the allocator itself would wait for further activity.
pub fn give_back() {
    // SAFETY: allowed at any time and on any thread.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
    // SAFETY: the callback takes what dl_iterate_phdr(3) passes, and no data.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[allow(unsafe_code)]
    unsafe {
        libc::dl_iterate_phdr(Some(unmap_constant_pages), std::ptr::null_mut());
    }
}

/// Unmaps code and constants of the first object reported, which is the program. For every page used the kernel maps
/// 64 KiB, so after a start, or some work, most of the program is resident. What is used later is mapped again from the page cache.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[allow(unsafe_code)]
unsafe extern "C" fn unmap_constant_pages(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    const STOP: libc::c_int = 1;
    // SAFETY: the dynamic linker passes a valid object with as many headers as it says.
    let (base, headers, page) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
        (
            object.dlpi_addr,
            headers,
            libc::sysconf(libc::_SC_PAGESIZE) as u64,
        )
    };
    for header in headers {
        // Relocations write to writable segments only, even to those that are protected afterwards.
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0 {
            let start = (base + header.p_vaddr).next_multiple_of(page);
            let end = (base + header.p_vaddr + header.p_filesz) / page * page;
            let length = end.saturating_sub(start) as usize;
            // SAFETY: these pages were never written, so the kernel reads the same bytes from the file again.
            unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        }
    }
    STOP
}
