"""A shop on the bus. `shop.py nats URL` or `shop.py kafka BROKERS`.

Prints every message that it reads as a line of JSON; publishes what it is told on standard input,
a line `TOPIC JSON` each; checks passes of QUEUE_READY and position.admitted against the JWKS whose
address is the third argument.
"""

import asyncio
import json
import sys
import threading

import jwt

BUS, ADDRESS, JWKS = sys.argv[1:4]
KEYS = jwt.PyJWKClient(JWKS)


def show(topic, headers, body):
    token = body.get("checkout_token") or body.get("data", {}).get("session_token")
    claims = None
    if token:
        key = KEYS.get_signing_key_from_jwt(token)
        # Passes live for a second in this sale; a machine that does ten other things reads later.
        options = {"verify_exp": False}
        claims = jwt.decode(token, key.key, algorithms=["ES256"], options=options)
    line = {"topic": topic, "headers": headers, "body": body, "claims": claims}
    print(json.dumps(line), flush=True)


async def nats_shop():
    import nats

    client = await nats.connect(ADDRESS)
    stream = client.jetstream()

    async def heard(message):
        show(message.subject, dict(message.headers or {}), json.loads(message.data))

    # The streams are made by whoever publishes first.
    for name in ["POSITION_EVENTS", "SESSION_EVENTS", "QUEUE_EVENTS", "SYSTEM_EVENTS"]:
        while True:
            try:
                await stream.stream_info(name)
                break
            except nats.js.errors.NotFoundError:
                await asyncio.sleep(0.1)
    for part in ["position", "session", "queue", "system"]:
        await stream.subscribe(f"waitingroom.{part}.>", cb=heard, ordered_consumer=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        topic, body = line.strip().split(" ", 1)
        await stream.publish(topic, body.encode())


def kafka_shop():
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": ADDRESS})

    def told():
        for line in sys.stdin:
            topic, body = line.strip().split(" ", 1)
            producer.produce(topic, body.encode())
            producer.flush()

    threading.Thread(target=told, daemon=True).start()
    consumer = Consumer(
        {
            "bootstrap.servers": ADDRESS,
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": True,
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    consumer.subscribe(["QUEUE_JOINED", "QUEUE_LEFT", "QUEUE_READY"])
    while True:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        headers = {name: value.decode() for name, value in message.headers() or []}
        headers["key"] = message.key().decode()
        show(message.topic(), headers, json.loads(message.value()))


if BUS == "nats":
    asyncio.run(nats_shop())
else:
    kafka_shop()
