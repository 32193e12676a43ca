"""Numbers in memory by address, little-endian, compiled; beside byte_kernels.py, and as careless of where a buffer ends."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _pointer(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


def _loading(bits, is_signed=True):
    def load(typing_context, address):
        def generate(context, builder, signature, arguments):
            word = builder.load(_pointer(builder, arguments[0], ir.IntType(bits)))
            word.align = 1
            if bits == 64:
                return word
            extend = builder.sext if is_signed else builder.zext
            return extend(word, ir.IntType(64))

        return types.int64(types.int64), generate

    return intrinsic(load)


def _storing(bits):
    def store(typing_context, address, value):
        def generate(context, builder, signature, arguments):
            address, value = arguments
            if bits < 64:
                value = builder.trunc(value, ir.IntType(bits))
            builder.store(value, _pointer(builder, address, ir.IntType(bits))).align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return intrinsic(store)


load_byte = _loading(8, is_signed=False)
load_int = _loading(32)
load_long = _loading(64)
store_byte = _storing(8)
store_int = _storing(32)
store_long = _storing(64)


def _float_conversion(source_bits, target_bits):
    """The bits of a float as those of one of another width."""
    kinds = {32: ir.FloatType(), 64: ir.DoubleType()}

    def convert(typing_context, bits):
        def generate(context, builder, signature, arguments):
            word = arguments[0]
            if source_bits == 32:
                word = builder.trunc(word, ir.IntType(32))
            number = builder.bitcast(word, kinds[source_bits])
            change = builder.fpext if target_bits > source_bits else builder.fptrunc
            found = builder.bitcast(change(number, kinds[target_bits]), ir.IntType(target_bits))
            return found if target_bits == 64 else builder.zext(found, ir.IntType(64))

        return types.int64(types.int64), generate

    return intrinsic(convert)


def _whole_to_float(bits):
    kind = ir.FloatType() if bits == 32 else ir.DoubleType()

    def convert(typing_context, number):
        def generate(context, builder, signature, arguments):
            found = builder.bitcast(builder.sitofp(arguments[0], kind), ir.IntType(bits))
            return found if bits == 64 else builder.zext(found, ir.IntType(64))

        return types.int64(types.int64), generate

    return intrinsic(convert)


float_to_double = _float_conversion(32, 64)
long_to_float = _whole_to_float(32)
long_to_double = _whole_to_float(64)
