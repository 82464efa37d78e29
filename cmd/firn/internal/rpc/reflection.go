package rpc

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
)

// The services of reflection, and their method. The messages of v1 and v1alpha are the same.
const (
	reflectionService    = "grpc.reflection.v1.ServerReflection"
	oldReflectionService = "grpc.reflection.v1alpha.ServerReflection"
	reflectionMethod     = "ServerReflectionInfo"
)

// A reflectionStream has the questions and answers of a stream of reflection, over any transport.
type reflectionStream struct {
	grpc.ServerStream // its methods are not called
	receive           func() (*reflectionv1.ServerReflectionRequest, error)
	send              func(*reflectionv1.ServerReflectionResponse) error
}

// answer answers questions until receive returns an error; nil for [io.EOF].
func (s reflectionStream) answer() error {
	return reflection.NewServerV1(reflection.ServerOptions{Services: shown{}}).ServerReflectionInfo(s)
}

// Recv returns the next question. It refuses one that asks for nothing, for which the library would end the stream.
func (s reflectionStream) Recv() (*reflectionv1.ServerReflectionRequest, error) {
	for {
		asked, err := s.receive()
		if err != nil || asked.MessageRequest != nil {
			return asked, err
		}
		if err := s.send(&reflectionv1.ServerReflectionResponse{
			ValidHost: asked.GetHost(), OriginalRequest: asked,
			MessageResponse: &reflectionv1.ServerReflectionResponse_ErrorResponse{ErrorResponse: &reflectionv1.ErrorResponse{
				ErrorCode: int32(codes.InvalidArgument), ErrorMessage: "reflection: the request asks for nothing that is known here",
			}},
		}); err != nil {
			return nil, err
		}
	}
}

// Send sends an answer.
func (s reflectionStream) Send(answer *reflectionv1.ServerReflectionResponse) error {
	return s.send(answer)
}

// shown are the services that reflection lists.
type shown struct{}

// GetServiceInfo implements [reflection.ServiceInfoProvider].
func (shown) GetServiceInfo() map[string]grpc.ServiceInfo {
	return map[string]grpc.ServiceInfo{firnv1connect.IDServiceName: {}, firnv1connect.LeaseServiceName: {}, healthService: {}}
}
