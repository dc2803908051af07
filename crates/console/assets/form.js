// A form from a JSON Schema. What it cannot draw is a field for JSON, for that property alone; the gateway checks all.

import { h, visible } from './dom.js';

const DEEPEST = 4;
// Fields of one form: a schema that refers to itself could ask for millions.
const MOST_FIELDS = 400;
let fields = 0;
let room = 0;

/** Whether there is room for the members of an object, which is then taken. */
function takeRoom(schema) {
  const count = Object.keys(schema.properties ?? {}).length;
  if (count > room) return false;
  room -= count;
  return true;
}

function resolve(schema, root) {
  let found = schema;
  for (let steps = 0; found && typeof found === 'object' && typeof found.$ref === 'string' && steps < 8; steps += 1) {
    if (!found.$ref.startsWith('#')) return {};
    found = found.$ref.slice(1).split('/').filter(Boolean).reduce((at, key) => at?.[decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')], root);
  }
  return found && typeof found === 'object' ? found : {};
}

function typeOf(schema) {
  if (Array.isArray(schema.type)) {
    const real = schema.type.filter((one) => one !== 'null');
    return real.length === 1 ? real[0] : null;
  }
  return schema.type ?? (schema.properties ? 'object' : null);
}

const labelled = (name, hint, input, id) => h('div', { class: 'field' },
  h('label', { for: id }, name), input,
  hint ? h('p', { class: 'hint', id: `${id}-hint` }, hint) : null);

function range(schema) {
  const parts = [];
  if (schema.minimum !== undefined) parts.push(`at least ${schema.minimum}`);
  if (schema.maximum !== undefined) parts.push(`at most ${schema.maximum}`);
  if (schema.minLength !== undefined) parts.push(`${schema.minLength} characters or more`);
  if (schema.maxLength !== undefined) parts.push(`up to ${schema.maxLength} characters`);
  if (schema.default !== undefined) parts.push(`usually ${JSON.stringify(schema.default)}`);
  return parts.join(', ');
}

function hintOf(schema) {
  return [schema.description, range(schema)].filter(Boolean).join(' · ');
}

/** A field: `node`, `read()` which may throw, and `write(value)`. */
function field(name, raw, root, depth) {
  const schema = resolve(raw, root);
  const id = `field-${fields += 1}`;
  const attributes = { id, 'aria-describedby': hintOf(schema) ? `${id}-hint` : null };
  if (schema.const !== undefined) {
    const input = h('input', { ...attributes, value: JSON.stringify(schema.const), readonly: true });
    return { node: labelled(name, hintOf(schema), input, id), read: () => schema.const, write() {} };
  }
  if (Array.isArray(schema.enum)) {
    const input = h('select', attributes, schema.enum.map((one, place) => h('option', { value: place }, typeof one === 'string' ? one : JSON.stringify(one))));
    return {
      node: labelled(name, hintOf(schema), input, id), read: () => schema.enum[input.value],
      write: (value) => { input.value = Math.max(0, schema.enum.findIndex((one) => JSON.stringify(one) === JSON.stringify(value))); },
    };
  }
  const variants = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(variants) && variants.length && depth < DEEPEST) return choice(name, schema, variants, root, depth);
  switch (typeOf(schema)) {
    case 'string': {
      const long = (schema.maxLength ?? 0) > 200 || /text|content|body|message/i.test(name);
      const input = h(long ? 'textarea' : 'input', attributes);
      return { node: labelled(name, hintOf(schema), input, id), read: () => input.value, write: (value) => { input.value = value ?? ''; } };
    }
    case 'integer':
    case 'number': {
      const step = typeOf(schema) === 'integer' ? 1 : 'any';
      const input = h('input', { ...attributes, type: 'number', step, min: schema.minimum, max: schema.maximum });
      const read = () => {
        if (input.value === '') throw new Error(`${name} needs a number`);
        return Number(input.value);
      };
      return { node: labelled(name, hintOf(schema), input, id), read, write: (value) => { input.value = value ?? ''; } };
    }
    case 'boolean': {
      const input = h('select', attributes, h('option', { value: 'true' }, 'true'), h('option', { value: 'false' }, 'false'));
      return { node: labelled(name, hintOf(schema), input, id), read: () => input.value === 'true', write: (value) => { input.value = String(value === true); } };
    }
    case 'array': if (depth < DEEPEST && !Array.isArray(schema.items) && schema.items && typeof schema.items === 'object') return rows(name, schema, root, depth); break;
    case 'object': if (depth < DEEPEST && schema.properties && takeRoom(schema)) return group(name, schema, root, depth); break;
  }
  const input = h('textarea', { ...attributes, rows: 3, spellcheck: 'false' });
  return {
    node: labelled(`${name} (JSON)`, hintOf(schema), input, id),
    read() {
      try {
        return JSON.parse(input.value);
      } catch (error) {
        throw new Error(`${name}: ${error.message}`);
      }
    },
    write: (value) => { input.value = JSON.stringify(value ?? null, null, 2); },
  };
}

function choice(name, schema, variants, root, depth) {
  const id = `field-${fields += 1}`;
  const title = (one, place) => resolve(one, root).title ?? (resolve(one, root).const !== undefined ? JSON.stringify(resolve(one, root).const) : resolve(one, root).type ?? `Variant ${place + 1}`);
  const place = h('div', {});
  let current;
  const select = h('select', { id, onchange: () => pick() }, variants.map((one, index) => h('option', { value: index }, title(one, index))));
  const pick = () => {
    current = field(name, variants[select.value || 0], root, depth + 1);
    place.replaceChildren(current.node);
  };
  pick();
  return {
    node: h('fieldset', {}, h('legend', {}, name), labelled('Variant', hintOf(schema), select, id), place),
    read: () => current.read(), write: (value) => current.write(value),
  };
}

function rows(name, schema, root, depth) {
  const list = h('div', { class: 'form' });
  let items = [];
  const add = (value) => {
    room = MOST_FIELDS;
    const item = field(`${items.length + 1}`, schema.items, root, depth + 1);
    const row = h('div', { class: 'row' }, item.node, h('button', { type: 'button', onclick() { items = items.filter((one) => one !== item); row.remove(); } }, 'Remove'));
    if (value !== undefined) item.write(value);
    items.push(item);
    list.append(row);
  };
  return {
    node: h('fieldset', {}, h('legend', {}, name), hintOf(schema) ? h('p', { class: 'hint' }, hintOf(schema)) : null, list, h('button', { type: 'button', onclick: () => add() }, 'Add')),
    read: () => items.map((item) => item.read()),
    write(value) {
      items = [];
      list.replaceChildren();
      (Array.isArray(value) ? value : []).forEach(add);
    },
  };
}

function group(name, schema, root, depth) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const members = Object.entries(schema.properties ?? {}).map(([key, raw]) => {
    const member = field(key, raw, root, depth + 1);
    if (required.has(key)) return { key, member, node: member.node, sent: () => true, send() {} };
    const box = h('input', { type: 'checkbox', 'aria-label': `Send ${key}`, onchange: () => { member.node.hidden = !box.checked; } });
    member.node.hidden = true;
    const node = h('div', { class: 'field' }, h('label', { class: 'check' }, box, `${key} (optional)`), member.node);
    return { key, member, node, sent: () => box.checked, send: (yes) => { box.checked = yes; member.node.hidden = !yes; } };
  });
  const content = members.length ? members.map((one) => one.node) : h('p', { class: 'quiet' }, 'It takes no arguments.');
  return {
    node: name === null ? h('div', { class: 'form' }, content) : h('fieldset', {}, h('legend', {}, name), content),
    read: () => Object.fromEntries(members.filter((one) => one.sent()).map((one) => [one.key, one.member.read()])),
    write(value) {
      for (const one of members) {
        const has = value !== null && typeof value === 'object' && one.key in value;
        one.send(has);
        if (has) one.member.write(value[one.key]);
      }
    },
  };
}

/** The arguments of a tool, as a form and as JSON that say the same. */
export function argumentsForm(schema) {
  room = MOST_FIELDS;
  const root = resolve(schema, schema);
  const isShort = takeRoom(root);
  const form = group(null, isShort ? root : {}, schema, 0);
  if (!isShort) form.node.replaceChildren(h('p', { class: 'note' }, 'It takes too many arguments for a form. Enter them as JSON.'));
  const json = h('textarea', { 'aria-label': 'Arguments as JSON', rows: 8, spellcheck: 'false' });
  json.hidden = true;
  let isJson = false;
  const readJson = () => {
    const value = JSON.parse(json.value || '{}');
    if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('The arguments are a JSON object');
    return value;
  };
  const tab = (label, wanted) => h('button', { type: 'button', 'aria-pressed': String(!wanted), onclick: () => change(wanted) }, label);
  const tabs = [tab('Form', false), tab('JSON', true)];
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const change = (wanted) => {
    if (wanted === isJson) return;
    problem.hidden = true;
    try {
      if (wanted) json.value = JSON.stringify(form.read(), null, 2);
      else form.write(readJson());
    } catch (error) {
      if (wanted) json.value = '{}';
      else {
        problem.textContent = visible(error.message);
        problem.hidden = false;
        return;
      }
    }
    isJson = wanted;
    json.hidden = !wanted;
    form.node.hidden = wanted;
    tabs.forEach((one, place) => one.setAttribute('aria-pressed', String((place === 1) === wanted)));
  };
  return {
    node: h('div', { class: 'form' }, h('div', { class: 'row', role: 'group', 'aria-label': 'How to enter arguments' }, tabs), form.node, json, problem),
    read: () => (isJson ? readJson() : form.read()),
    write(value) {
      if (isJson) json.value = JSON.stringify(value, null, 2);
      else form.write(value);
    },
  };
}
