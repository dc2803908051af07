//! The machine `virt` of QEMU: clock, serial port, heap, and what the test writes into memory before the start.
//!
//! Addresses are those of the machine's memory map; everything here that is unsafe touches one of them.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::ptr;

use embedded_alloc::TlsfHeap;

const CLOCK: *const u32 = 0x0200_bff8 as *const u32;
const CLOCK_PER_MILLISECOND: u64 = 10_000;
const SERIAL: *mut u8 = 0x1000_0000 as *mut u8;
const SERIAL_STATUS: *const u8 = 0x1000_0005 as *const u8;
/// A byte has come.
const SERIAL_HAS_BYTE: u8 = 1;
/// QEMU ends with a success where this is written.
const POWER: *mut u32 = 0x0010_0000 as *mut u32;
const POWER_OFF: u32 = 0x5555;
/// `-device loader,file=…,addr=0x80600000,force-raw=on` puts the settings here.
const SETTINGS: *const u8 = 0x8060_0000 as *const u8;
const LONGEST_SETTINGS: usize = 512;

#[global_allocator]
static HEAP: TlsfHeap = TlsfHeap::empty();

unsafe extern "C" {
    static _heap_size: u8;
}

/// To be called once, before anything is allocated.
pub fn start_heap() {
    // SAFETY: the linker script keeps these bytes free for the heap, and `main` calls this once.
    unsafe { HEAP.init(riscv_rt::heap_start() as usize, &raw const _heap_size as usize) }
}

pub fn milliseconds() -> u64 {
    // SAFETY: the clock is two aligned words. The high one is read twice, for the low one may wrap between.
    unsafe {
        loop {
            let high = ptr::read_volatile(CLOCK.add(1));
            let low = ptr::read_volatile(CLOCK);
            if high == ptr::read_volatile(CLOCK.add(1)) {
                return ((u64::from(high) << 32) | u64::from(low)) / CLOCK_PER_MILLISECOND;
            }
        }
    }
}

/// The settings up to their first zero.
pub fn settings() -> &'static str {
    // SAFETY: this memory belongs to nobody else, and is not written after the start.
    let bytes = unsafe { core::slice::from_raw_parts(SETTINGS, LONGEST_SETTINGS) };
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    core::str::from_utf8(&bytes[..end]).unwrap_or_default()
}

pub fn power_off() -> ! {
    // SAFETY: a register of the machine.
    unsafe { ptr::write_volatile(POWER, POWER_OFF) }
    loop {}
}

/// The serial port, on which the board says what it does.
pub struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the transmit register; QEMU's is always ready.
            unsafe { ptr::write_volatile(SERIAL, byte) }
        }
        Ok(())
    }
}

impl Serial {
    /// The next byte that came; `None` while there is none.
    pub fn read(&mut self) -> Option<u8> {
        // SAFETY: the status and the receive register.
        unsafe {
            let has_byte = ptr::read_volatile(SERIAL_STATUS) & SERIAL_HAS_BYTE != 0;
            has_byte.then(|| ptr::read_volatile(SERIAL))
        }
    }
}

/// One line on the serial port.
macro_rules! say {
    ($($words:tt)*) => {{
        use core::fmt::Write;
        let _ = writeln!($crate::machine::Serial, $($words)*);
    }};
}
pub(crate) use say;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    say!("panic: {info}");
    power_off()
}
