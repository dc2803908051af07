//! One TCP connection: a virtio network card, smoltcp, and an address by DHCP.

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::vec;
use core::ptr::NonNull;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::{dhcpv4, tcp};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use virtio_drivers::device::net::{TxBuffer, VirtIONet};
use virtio_drivers::transport::mmio::{MmioTransport, VirtIOHeader};
use virtio_drivers::transport::{DeviceType, Transport};
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

use crate::machine::milliseconds;

/// The places where `virt` puts virtio devices.
const SLOTS: usize = 8;
const FIRST_SLOT: usize = 0x1000_1000;
const SLOT_BYTES: usize = 0x1000;

const QUEUE: usize = 8;
/// A whole Ethernet packet and the header of virtio.
const PACKET: usize = 1536;

/// The connection is gone.
#[derive(Debug)]
pub struct Closed;

pub struct Network {
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    tcp: SocketHandle,
    dhcp: SocketHandle,
    next_port: u16,
}

impl Network {
    /// `None` where the machine has no network card.
    pub fn open() -> Option<Network> {
        let mut card = Card::find()?;
        let address = EthernetAddress(card.driver.mac_address());
        let interface = Interface::new(Config::new(address.into()), &mut card, now());
        let mut sockets = SocketSet::new(vec![]);
        let buffer = || tcp::SocketBuffer::new(vec![0; 4096]);
        let tcp = sockets.add(tcp::Socket::new(buffer(), buffer()));
        let dhcp = sockets.add(dhcpv4::Socket::new());
        Some(Network { card, interface, sockets, tcp, dhcp, next_port: 49152 })
    }

    pub fn mac_address(&self) -> [u8; 6] {
        self.card.driver.mac_address()
    }

    /// Moves packets in both directions. Nothing happens on the network without it.
    pub fn poll(&mut self) {
        self.interface.poll(now(), &mut self.card, &mut self.sockets);
        match self.sockets.get_mut::<dhcpv4::Socket<'_>>(self.dhcp).poll() {
            Some(dhcpv4::Event::Configured(lease)) => {
                self.interface.update_ip_addrs(|addresses| {
                    addresses.clear();
                    // One place is always there.
                    let _ = addresses.push(IpCidr::Ipv4(lease.address));
                });
                if let Some(router) = lease.router {
                    let _ = self.interface.routes_mut().add_default_ipv4_route(router);
                }
            }
            Some(dhcpv4::Event::Deconfigured) => self.interface.update_ip_addrs(|addresses| addresses.clear()),
            None => {}
        }
    }

    /// Dials, and waits until somebody answers.
    pub fn connect(&mut self, host: IpAddress, port: u16) -> Result<(), Closed> {
        while self.interface.ipv4_addr().is_none() {
            self.poll();
        }
        self.socket().abort();
        self.poll();
        self.next_port = self.next_port.checked_add(1).unwrap_or(49152);
        let local = self.next_port;
        let context = self.interface.context();
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp);
        socket.connect(context, (host, port), local).map_err(|_| Closed)?;
        while !self.socket().may_send() {
            self.poll();
            if !self.socket().is_open() {
                return Err(Closed);
            }
        }
        Ok(())
    }

    /// What has arrived; 0 where nothing has.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Closed> {
        self.poll();
        match self.socket().can_recv() {
            true => self.socket().recv_slice(into).map_err(|_| Closed),
            false if self.socket().may_recv() => Ok(0),
            false => Err(Closed),
        }
    }

    /// Waits until all of it is on its way.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Closed> {
        while !bytes.is_empty() {
            let sent = self.socket().send_slice(bytes).map_err(|_| Closed)?;
            bytes = &bytes[sent..];
            self.poll();
        }
        Ok(())
    }

    pub fn close(&mut self) {
        self.socket().abort();
        self.poll();
    }

    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.tcp)
    }
}

fn now() -> Instant {
    Instant::from_millis(milliseconds() as i64)
}

/// The network card, as smoltcp wants it.
struct Card {
    driver: VirtIONet<Memory, MmioTransport<'static>, QUEUE>,
    received: [u8; PACKET],
}

impl Card {
    fn find() -> Option<Card> {
        let transport = (0..SLOTS).find_map(|slot| {
            let header = NonNull::new((FIRST_SLOT + slot * SLOT_BYTES) as *mut VirtIOHeader)?;
            // SAFETY: the machine has a virtio register block in each of these places, with or without a device.
            let transport = unsafe { MmioTransport::new(header, SLOT_BYTES) }.ok()?;
            (transport.device_type() == DeviceType::Network).then_some(transport)
        })?;
        Some(Card { driver: VirtIONet::new(transport, PACKET).ok()?, received: [0; PACKET] })
    }
}

impl phy::Device for Card {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let buffer = self.driver.receive().ok()?;
        let packet = buffer.packet();
        let length = packet.len().min(PACKET);
        self.received[..length].copy_from_slice(&packet[..length]);
        self.driver.recycle_rx_buffer(buffer).ok()?;
        Some((Received(&self.received[..length]), Sending(&mut self.driver)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sending<'_>> {
        self.driver.can_send().then_some(Sending(&mut self.driver))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities.max_burst_size = Some(1);
        capabilities
    }
}

struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

struct Sending<'a>(&'a mut VirtIONet<Memory, MmioTransport<'static>, QUEUE>);

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = [0; PACKET];
        let result = write(&mut packet[..length]);
        // A packet that is lost here is sent again by TCP.
        let _ = self.0.send(TxBuffer::from(&packet[..length]));
        result
    }
}

/// The card reads the same memory at the same addresses.
struct Memory;

fn pages_layout(pages: usize) -> Layout {
    Layout::from_size_align(pages * PAGE_SIZE, PAGE_SIZE).unwrap_or(Layout::new::<u8>())
}

// SAFETY: pages come zeroed and aligned from the allocator, and there is neither address translation nor a cache.
unsafe impl Hal for Memory {
    fn dma_alloc(pages: usize, _direction: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let layout = pages_layout(pages);
        // SAFETY: the layout is not empty: virtio asks for at least one page.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        (start.as_ptr() as PhysAddr, start)
    }

    unsafe fn dma_dealloc(_physical: PhysAddr, start: NonNull<u8>, pages: usize) -> i32 {
        // SAFETY: `start` came from `dma_alloc` with as many pages.
        unsafe { dealloc(start.as_ptr(), pages_layout(pages)) };
        0
    }

    unsafe fn mmio_phys_to_virt(physical: PhysAddr, _size: usize) -> NonNull<u8> {
        NonNull::new(physical as *mut u8).unwrap_or(NonNull::dangling())
    }

    unsafe fn share(buffer: NonNull<[u8]>, _direction: BufferDirection) -> PhysAddr {
        buffer.as_ptr().cast::<u8>() as PhysAddr
    }

    unsafe fn unshare(_physical: PhysAddr, _buffer: NonNull<[u8]>, _direction: BufferDirection) {}
}
