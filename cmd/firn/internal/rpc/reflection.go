package rpc

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
)

// The services of reflection, and their method.
const (
	reflectionService    = "grpc.reflection.v1.ServerReflection"
	oldReflectionService = "grpc.reflection.v1alpha.ServerReflection"
	reflectionMethod     = "ServerReflectionInfo"
)

// raw is a message that is not decoded.
type raw []byte

// A reflection answers the questions of a stream of grpc.reflection. It reads and writes the messages by hand: their
// generated code would be two more files of descriptors, which every start of the program would register. The messages
// of v1 and v1alpha are the same.
type reflection struct{ sent map[string]bool } // the files that the client has, by path

// The fields of ServerReflectionRequest and ServerReflectionResponse.
const (
	askFile       = 3
	askSymbol     = 4
	askExtension  = 5
	askExtensions = 6
	askServices   = 7

	validHost       = 1
	originalRequest = 2
	answerFiles     = 4
	answerNumbers   = 5
	answerServices  = 6
	answerError     = 7
)

// answer returns the response to a request.
func (r *reflection) answer(request []byte) ([]byte, error) {
	var host, response []byte
	err := eachField(request, func(number protowire.Number, value []byte) {
		switch number {
		case 1:
			host = value
		case askFile:
			response = r.file(protoregistry.GlobalFiles.FindFileByPath(string(value)))
		case askSymbol:
			response = r.symbol(protoreflect.FullName(value))
		case askExtension:
			response = r.extension(value)
		case askExtensions:
			response = extensions(protoreflect.FullName(value))
		case askServices:
			response = listed()
		}
	})
	if err != nil {
		return nil, err
	}
	if response == nil {
		response = refused(codes.InvalidArgument, "the request asks for nothing that is known here")
	}
	var out []byte
	out = appendBytes(out, validHost, host)
	out = appendBytes(out, originalRequest, request)
	return append(out, response...), nil
}

// eachField calls do with each field of a message that has a length.
func eachField(message []byte, do func(protowire.Number, []byte)) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return protowire.ParseError(n)
			}
			do(number, value)
			message = message[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
	}
	return nil
}

func appendBytes(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

// file returns the answer that has a file and those that it imports, except those sent before.
func (r *reflection) file(file protoreflect.FileDescriptor, err error) []byte {
	if err != nil {
		return refused(codes.NotFound, err.Error())
	}
	var files []byte
	if err := r.add(&files, file); err != nil {
		return refused(codes.Internal, err.Error())
	}
	if len(files) == 0 { // the client asks again for what it has
		delete(r.sent, file.Path())
		if err := r.add(&files, file); err != nil {
			return refused(codes.Internal, err.Error())
		}
	}
	return appendBytes(nil, answerFiles, files)
}

func (r *reflection) add(files *[]byte, file protoreflect.FileDescriptor) error {
	if file.IsPlaceholder() || r.sent[file.Path()] {
		return nil
	}
	if r.sent == nil {
		r.sent = map[string]bool{}
	}
	r.sent[file.Path()] = true
	encoded, err := proto.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		return err
	}
	*files = appendBytes(*files, 1, encoded)
	for i := range file.Imports().Len() {
		if err := r.add(files, file.Imports().Get(i).FileDescriptor); err != nil {
			return err
		}
	}
	return nil
}

func (r *reflection) symbol(name protoreflect.FullName) []byte {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return refused(codes.NotFound, err.Error())
	}
	return r.file(found.ParentFile(), nil)
}

// extension answers an ExtensionRequest.
func (r *reflection) extension(request []byte) []byte {
	var of protoreflect.FullName
	if err := eachField(request, func(number protowire.Number, value []byte) {
		if number == 1 {
			of = protoreflect.FullName(value)
		}
	}); err != nil {
		return refused(codes.InvalidArgument, err.Error())
	}
	var number protowire.Number
	for rest := request; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if field == 2 && kind == protowire.VarintType {
			value, _ := protowire.ConsumeVarint(rest[n:])
			number = protowire.Number(value)
		}
		rest = rest[n+protowire.ConsumeFieldValue(field, kind, rest[n:]):] // eachField has checked them
	}
	found, err := protoregistry.GlobalTypes.FindExtensionByNumber(of, number)
	if err != nil {
		return refused(codes.NotFound, err.Error())
	}
	return r.file(found.TypeDescriptor().ParentFile(), nil)
}

// extensions returns the numbers of all extensions of a message.
func extensions(of protoreflect.FullName) []byte {
	if _, err := protoregistry.GlobalTypes.FindMessageByName(of); err != nil {
		return refused(codes.NotFound, err.Error())
	}
	answer := appendBytes(nil, 1, []byte(of))
	protoregistry.GlobalTypes.RangeExtensionsByMessage(of, func(x protoreflect.ExtensionType) bool {
		answer = protowire.AppendTag(answer, 2, protowire.VarintType)
		answer = protowire.AppendVarint(answer, uint64(x.TypeDescriptor().Number()))
		return true
	})
	return appendBytes(nil, answerNumbers, answer)
}

// listed returns the names of the services.
func listed() []byte {
	var all []byte
	for _, service := range []string{firnv1connect.IDServiceName, firnv1connect.LeaseServiceName, healthService} {
		all = appendBytes(all, 1, appendBytes(nil, 1, []byte(service)))
	}
	return appendBytes(nil, answerServices, all)
}

func refused(code codes.Code, why string) []byte {
	answer := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
	return appendBytes(nil, answerError, appendBytes(answer, 2, []byte(fmt.Sprintf("reflection: %s", why))))
}
