"""The contract of waitroom.v1.WaitroomService, checked from the outside.

Usage: client.py GENERATED GRPC_ADDRESS ADMIN_ADDRESS KEY SERVER_PID
"""

import base64
import datetime
import json
import os
import signal
import sys
import urllib.request

generated, grpc_address, admin_address, key, server_pid = sys.argv[1:]
sys.path.insert(0, generated)

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from waitroom.v1 import waitroom_pb2 as pb
from waitroom.v1 import waitroom_pb2_grpc

DEADLINE = 20
channel = grpc.insecure_channel(grpc_address)
grpc.channel_ready_future(channel).result(timeout=DEADLINE)
queue = waitroom_pb2_grpc.WaitroomServiceStub(channel)
with_key = (("authorization", "Bearer " + key),)


def admit(count):
    request = urllib.request.Request(
        f"http://{admin_address}/admin/v1/rooms/default/admit",
        data=json.dumps({"count": count}).encode(),
        headers={"authorization": "Bearer " + key, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        assert answer.status == 200, answer.status


def refused(call, code, begins, metadata=with_key):
    try:
        answer = call(metadata)
        answer = list(answer) if hasattr(answer, "__next__") else answer
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        assert error.details().startswith(begins), error.details()
        return error
    raise AssertionError(f"not refused: {answer}")


def moment(text):
    at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    assert at.utcoffset() == datetime.timedelta(0), text
    return at


def join(user, event="default"):
    request = pb.JoinQueueRequest(
        user_id=user, event_id=event, user_agent="Mozilla/5.0", ip_address="192.0.2.7"
    )
    return queue.JoinQueue(request, timeout=DEADLINE, metadata=with_key)


def status(session):
    request = pb.GetQueueStatusRequest(session_id=session)
    return queue.GetQueueStatus(request, timeout=DEADLINE, metadata=with_key)


# Field numbers are the contract: existing clients have them compiled in.
NUMBERS = {
    "JoinQueueRequest": "user_id event_id user_agent ip_address",
    "JoinQueueResponse": "session_id position queue_length queued_at expires_at websocket_url",
    "GetQueueStatusRequest": "session_id",
    "GetQueueStatusResponse": "session_id status position queue_length queued_at expires_at"
    " checkout_token checkout_url checkout_expires_at admitted_at",
    "LeaveQueueRequest": "session_id",
    "LeaveQueueResponse": "session_id message",
    "StreamQueuePositionRequest": "session_id",
    "StreamQueuePositionResponse": "session_id position queue_length status updated_at"
    " checkout_token checkout_url",
    "HealthCheckRequest": "",
    "HealthCheckResponse": "status service version kafka_enabled components",
}
for message, fields in NUMBERS.items():
    found = [f.name for f in sorted(getattr(pb, message).DESCRIPTOR.fields, key=lambda f: f.number)]
    assert found == fields.split(), (message, found)
    numbers = [f.number for f in getattr(pb, message).DESCRIPTOR.fields]
    assert sorted(numbers) == list(range(1, len(numbers) + 1)), (message, numbers)
for number, name in enumerate(
    "UNSPECIFIED QUEUED PROCESSING READY ACTIVE COMPLETED FAILED EXPIRED CANCELLED".split()
):
    assert pb.SessionStatus.Value("SESSION_STATUS_" + name) == number

# Joining, and joining again.
ana, bo = join("ana"), join("bo")
assert (ana.position, bo.position) == (1, 2), (ana, bo)
assert bo.queue_length == 2
assert join("ana").session_id == ana.session_id
now = datetime.datetime.now(datetime.timezone.utc)
assert abs((moment(ana.queued_at) - now).total_seconds()) < 60, "true UTC"
assert moment(ana.expires_at) > moment(ana.queued_at)

# Waiting.
told = status(bo.session_id)
assert told.status == pb.SESSION_STATUS_QUEUED and told.position == 2, told
assert told.session_id == bo.session_id and told.checkout_token == ""

# A stream: the first message at once, then the change, then the token and the end.
stream = queue.StreamQueuePosition(
    pb.StreamQueuePositionRequest(session_id=bo.session_id), timeout=60, metadata=with_key
)
first = next(stream)
assert (first.position, first.status) == (2, pb.SESSION_STATUS_QUEUED), first
admit(1)
second = next(stream)
assert (second.position, second.status) == (1, pb.SESSION_STATUS_QUEUED), second
admit(1)
third = next(stream)
assert (third.position, third.status) == (0, pb.SESSION_STATUS_READY), third
assert third.checkout_token and third.checkout_token in third.checkout_url
assert list(stream) == [], "it ends after a final status"
assert stream.code() == grpc.StatusCode.OK

# Ready.
told = status(ana.session_id)
assert told.status == pb.SESSION_STATUS_READY and told.position == 0, told
claims = told.checkout_token.split(".")[1]
claims = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
assert claims["session_id"] == ana.session_id and claims["event_id"] == "default", claims
expires = int(moment(told.checkout_expires_at).timestamp())
assert claims["exp"] == expires and claims["iat"] <= claims["exp"], claims
assert moment(told.admitted_at) >= moment(told.queued_at)

# Leaving.
left = queue.LeaveQueue(
    pb.LeaveQueueRequest(session_id=ana.session_id), timeout=DEADLINE, metadata=with_key
)
assert left.session_id == ana.session_id and left.message
assert status(ana.session_id).status == pb.SESSION_STATUS_COMPLETED
cy = join("cy")
queue.LeaveQueue(
    pb.LeaveQueueRequest(session_id=cy.session_id), timeout=DEADLINE, metadata=with_key
)
assert status(cy.session_id).status == pb.SESSION_STATUS_CANCELLED

# Refusals.
Code = grpc.StatusCode
strange = pb.GetQueueStatusRequest(session_id="00000000-0000-4000-8000-000000000000")
refused(
    lambda m: queue.GetQueueStatus(strange, timeout=DEADLINE, metadata=m),
    Code.NOT_FOUND,
    "WTR001 - Session not found",
)
nowhere = pb.JoinQueueRequest(user_id="ana", event_id="nowhere")
error = refused(
    lambda m: queue.JoinQueue(nowhere, timeout=DEADLINE, metadata=m),
    Code.NOT_FOUND,
    "WTR006 - Event not found",
)
assert ("waitroom-code", "room_unknown") in [tuple(it) for it in error.trailing_metadata()]
nobody = pb.JoinQueueRequest(user_id="", event_id="default")
refused(
    lambda m: queue.JoinQueue(nobody, timeout=DEADLINE, metadata=m), Code.INVALID_ARGUMENT, ""
)
for wrong in [("authorization", "Bearer wrong"), ("x-api-key", "wrong")]:
    refused(
        lambda m: queue.JoinQueue(nobody, timeout=DEADLINE, metadata=m),
        Code.UNAUTHENTICATED,
        "api_key_invalid",
        metadata=(wrong,),
    )
# Development mode: a caller on this machine needs no key.
queue.JoinQueue(
    pb.JoinQueueRequest(user_id="dee", event_id="default"),
    timeout=DEADLINE,
    metadata=(("x-api-key", key),),
)
queue.JoinQueue(pb.JoinQueueRequest(user_id="dee", event_id="default"), timeout=DEADLINE)

# A deadline.
dee = join("dee")
late = queue.StreamQueuePosition(
    pb.StreamQueuePositionRequest(session_id=dee.session_id), timeout=0.5, metadata=with_key
)
refused(lambda _: late, Code.DEADLINE_EXCEEDED, "")

# Health, ours and the standard one.
health = queue.HealthCheck(pb.HealthCheckRequest(), timeout=DEADLINE)
assert (health.status, health.service) == ("healthy", "waitroom"), health
assert health.version and not health.kafka_enabled
assert set(health.components) == {"store", "rooms"}, health
standard = health_pb2_grpc.HealthStub(channel)
for service in ["", "waitroom.v1.WaitroomService"]:
    checked = standard.Check(
        health_pb2.HealthCheckRequest(service=service), timeout=DEADLINE
    )
    assert checked.status == health_pb2.HealthCheckResponse.SERVING

# Reflection: a client that has never seen the .proto finds the service and its messages.
database = ProtoReflectionDescriptorDatabase(channel)
services = set(database.get_services())
assert {"waitroom.v1.WaitroomService", "grpc.health.v1.Health"} <= services, services
service = DescriptorPool(database).FindServiceByName("waitroom.v1.WaitroomService")
assert sorted(service.methods_by_name) == sorted(
    "JoinQueue GetQueueStatus LeaveQueue StreamQueuePosition HealthCheck".split()
)
method = service.methods_by_name["StreamQueuePosition"]
assert [field.name for field in method.output_type.fields][:3] == [
    "session_id",
    "position",
    "queue_length",
]

# The server goes down with a stream open: the stream is told.
watching = queue.StreamQueuePosition(
    pb.StreamQueuePositionRequest(session_id=dee.session_id), timeout=60, metadata=with_key
)
assert next(watching).status == pb.SESSION_STATUS_QUEUED
os.kill(int(server_pid), signal.SIGTERM)
refused(lambda _: watching, Code.UNAVAILABLE, "stopping")
channel.close()
print("all promises kept")
