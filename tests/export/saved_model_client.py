"""A client of exported SavedModels, run in a process without `keras_transformer`.

It reads a task as JSON from stdin and writes the answers of each SavedModel to a file.
"""

import json
import os
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401, it registers the operations of the tokenizers
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import saved_model_pb2


def strings(texts):
    return tf.constant(texts, tf.string, shape=[len(texts)])


def decoded(value):
    return value.decode() if isinstance(value, bytes) else [decoded(one) for one in value]


def plain(tensors):
    """Return named tensors as numbers, texts and lists of them."""
    return {
        name: decoded(x.numpy().tolist()) if x.dtype == tf.string else x.numpy().tolist()
        for name, x in tensors.items()
    }


def attempt(function, *arguments):
    """Return the answer, or the message of the error."""
    try:
        return plain(function(*arguments))
    except tf.errors.InvalidArgumentError as error:
        return str(error)


def prediction_log():
    """Return the message class PredictionLog, with the fields that a warm-up request needs.

    They are those of prediction_log.proto, predict.proto and model.proto of TensorFlow Serving.
    """
    file = descriptor_pb2.FileDescriptorProto(name="log.proto", package="p", syntax="proto3")
    for message, fields in {
        "PredictionLog": [("predict_log", 6, "PredictLog")],
        "PredictLog": [("request", 1, "PredictRequest")],
        "PredictRequest": [("model_spec", 1, "ModelSpec"), ("inputs", 2, "Input")],
        "ModelSpec": [("name", 1, str), ("signature_name", 3, str)],
        "Input": [("key", 1, str), ("value", 2, bytes)],
    }.items():
        message = file.message_type.add(name=message)
        for name, number, kind in fields:
            field = message.field.add(name=name, number=number, label=3 if kind == "Input" else 1)
            field.type = {str: 9, bytes: 12}.get(kind, 11)
            if field.type == 11:
                field.type_name = ".p." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.PredictionLog"))


def requests(path):
    """Yield the request of each warm-up record, whose lengths and fields must all be known."""
    log = prediction_log()
    for record in tf.data.TFRecordDataset(path):
        message = log.FromString(record.numpy())
        assert message.SerializeToString() == record.numpy(), "a length is wrong"
        message.DiscardUnknownFields()
        assert message.SerializeToString() == record.numpy(), "unknown fields"
        yield message.predict_log.request


def inputs_of(request):
    """Return the named inputs of a request as arrays."""
    return {
        named.key: tf.make_ndarray(tensor_pb2.TensorProto.FromString(named.value))
        for named in request.inputs
    }


def warm_up(loaded, path):
    """Return the model name, the texts and the translations of each warm-up request."""
    found = []
    for request in requests(path):
        signature = loaded.signatures[request.model_spec.signature_name]
        inputs = {name: tf.constant(array) for name, array in inputs_of(request).items()}
        answer = plain(signature(**inputs))
        texts = [text.decode() for text in inputs["texts"].numpy()]
        found.append([request.model_spec.name, texts, answer["translations"]])
    return found


def devices(path):
    """Return the devices that the functions name; those that save and restore weights may."""
    with open(os.path.join(path, "saved_model.pb"), "rb") as file:
        (graph,) = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
    functions = graph.graph_def.library.function
    return sorted(
        {
            node.device
            for function in functions
            if "_traced_" not in function.signature.name
            for node in function.node_def
        }
    )


def in_a_session(path, texts):
    """Return the translations of a session, as TensorFlow Serving runs one."""
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def["serving_default"]
        texts = {signature.inputs["texts"].name: texts}
        translations = session.run(signature.outputs["translations"].name, texts)
        return [translation.decode() for translation in translations]


def answers_of(loaded, name, path, task):
    """Return the answers of one SavedModel."""
    answer = {"translate": {}, "serving_default": {}, "nbest": {}}
    for batch in task["batches"][name]:
        texts = strings(task["texts"][batch])
        answer["translate"][batch] = plain(loaded.translate(texts))["translations"]
        answer["nbest"][batch] = plain(loaded.nbest(texts))
        served = loaded.signatures["serving_default"](texts=texts)
        answer["serving_default"][batch] = plain(served)["translations"]
    answer["score"] = plain(loaded.score(strings(task["sources"]), strings(task["targets"])))
    answer["signatures"] = sorted(loaded.signatures)
    answer["devices"] = devices(path)
    if name == "plain":
        warm_up_file = os.path.join(path, "assets.extra", "tf_serving_warmup_requests")
        answer["warm_up"] = warm_up(loaded, warm_up_file)
        answer["as_serving"] = in_a_session(path, task["texts"]["many"])
        answer["no_scores"] = plain(loaded.score(strings([]), strings([])))
        answer["too_long"] = attempt(loaded.score, strings(["a"] * 2), strings(["b", "b " * 99]))
        answer["not_as_many"] = attempt(loaded.score, strings(["a"] * 2), strings(["b"]))
    return answer


def main():
    task = json.load(sys.stdin)
    paths = task["paths"]
    models = {name: tf.saved_model.load(path) for name, path in paths.items()}
    answers = {name: answers_of(models[name], name, path, task) for name, path in paths.items()}
    answers["modules"] = sorted(sys.modules)
    with open(task["answers"], "w", encoding="utf-8") as file:
        json.dump(answers, file)


if __name__ == "__main__":
    main()
