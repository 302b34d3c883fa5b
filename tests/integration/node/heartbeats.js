// amqp-client.js with heartbeats each second: node heartbeats.js HOST PORT
// It gives up when no octet has come or gone for one interval, and sends heartbeats only in answer to the broker's.
// Exits with 0 if all connections are still open after three seconds; prints what failed otherwise.
'use strict';

const assert = require('node:assert/strict');
const { setTimeout: sleep } = require('node:timers/promises');
const { AMQPClient } = require('@cloudamqp/amqp-client');

const CONNECTIONS = 6;
const APART_MS = 85;
const LASTING_MS = 3000;

async function main([host, port]) {
  const errors = [];
  const connections = [];
  // Their handshakes, and what they ask for later, fall on different moments between the broker's ticks.
  for (let number = 0; number < CONNECTIONS; number++) {
    const client = new AMQPClient(`amqp://guest:guest@${host}:${port}/?heartbeat=1`);
    client.onerror = (error) => errors.push(`connection ${number}: ${error.message}`);
    connections.push(await client.connect());
    await sleep(APART_MS);
  }
  await sleep(LASTING_MS / 2);
  for (const connection of connections.slice(CONNECTIONS / 2)) {
    await connection.channel();
    await sleep(APART_MS);
  }
  await sleep(LASTING_MS / 2);
  assert.deepEqual(errors, []);
  assert.ok(connections.every((connection) => !connection.closed));
  for (const connection of connections) await connection.close();
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
