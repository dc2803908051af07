// Asks the gateway: the same interface that the command line uses.

export class GatewayError extends Error {
  constructor(message, status, details) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

export async function ask(method, path, body) {
  const response = await fetch(`api/v1/${path}`, {
    method,
    headers: { 'X-Sinew': '1', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.status === 401) {
    const here = location.pathname.split('/').pop() + location.search;
    location.assign(here ? `login?next=${encodeURIComponent(here)}` : 'login');
    return new Promise(() => {});
  }
  const text = await response.text();
  let answer = null;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new GatewayError(`the answer is not JSON: ${text.slice(0, 200)}`, response.status);
  }
  if (response.ok) return answer;
  const error = answer.error;
  const message = answer.message ?? error?.error_message ?? 'the request failed';
  throw new GatewayError(message, response.status, typeof error === 'object' ? error : null);
}

export const get = (path, values) => {
  const query = new URLSearchParams(Object.entries(values ?? {}).filter(([, value]) => value !== '' && value !== null && value !== undefined));
  return ask('GET', query.size ? `${path}?${query}` : path);
};
/** The first items of an answer that comes in pages, or all of them, and how many there are. */
export async function items(path, list, values, most = Infinity) {
  const found = [];
  let page;
  do {
    page = await get(path, { ...values, limit: Math.min(1000, most - found.length), after: page?.next });
    found.push(...page[list]);
  } while (page.next && found.length < most);
  return { found, total: page.total };
}
export const post = (path, body) => ask('POST', path, body);
export const remove = (path) => ask('DELETE', path);
export const call = (device, tool, args, more) => post('call', { device, tool, arguments: args, ...more });

/** A device by its id or name; `undefined` where there is none. */
export const deviceOf = async (id) => (await get('devices', { id })).devices.find((one) => one.id === id || one.name === id);
