// Package wire implements BfRt over gRPC: the messages, generated from
// bfruntime.proto, and the five calls.
package wire

import (
	"context"

	"google.golang.org/grpc"
)

// This command generates bfruntime.pb.go:
//
// 	protoc -I . -I $GOOGLEAPIS --go_out=../../.. --go_opt=module=github.com/p4lb/p4lb bfruntime.proto
//
// go generate does not run it, because not every machine has protoc and googleapis.

// ServiceName is the name of the service in the names of its calls.
const ServiceName = "bfrt_proto.BfRuntime"

// AllPipes, AllDirections and AllParsers are the wildcards of a target.
const (
	AllPipes      = 0xffff
	AllDirections = 0xff
	AllParsers    = 0xff
)

// The streams of Read and StreamChannel.
type (
	ReadServer   = grpc.ServerStreamingServer[ReadResponse]
	StreamServer = grpc.BidiStreamingServer[StreamMessageRequest, StreamMessageResponse]
	ReadClient   = grpc.ServerStreamingClient[ReadResponse]
	StreamClient = grpc.BidiStreamingClient[StreamMessageRequest, StreamMessageResponse]
)

// A Service answers the calls.
type Service interface {
	Write(context.Context, *WriteRequest) (*WriteResponse, error)
	Read(*ReadRequest, ReadServer) error
	SetForwardingPipelineConfig(context.Context, *SetForwardingPipelineConfigRequest) (*SetForwardingPipelineConfigResponse, error)
	GetForwardingPipelineConfig(context.Context, *GetForwardingPipelineConfigRequest) (*GetForwardingPipelineConfigResponse, error)
	StreamChannel(StreamServer) error
}

// Register makes a gRPC server answer the calls with s.
func Register(g grpc.ServiceRegistrar, s Service) {
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*Service)(nil),
		Methods: []grpc.MethodDesc{
			method("Write", Service.Write),
			method("SetForwardingPipelineConfig", Service.SetForwardingPipelineConfig),
			method("GetForwardingPipelineConfig", Service.GetForwardingPipelineConfig),
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "Read", ServerStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
				m := new(ReadRequest)
				if err := stream.RecvMsg(m); err != nil {
					return err
				}
				return srv.(Service).Read(m, &grpc.GenericServerStream[ReadRequest, ReadResponse]{ServerStream: stream})
			}},
			{StreamName: "StreamChannel", ServerStreams: true, ClientStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
				return srv.(Service).StreamChannel(&grpc.GenericServerStream[StreamMessageRequest, StreamMessageResponse]{ServerStream: stream})
			}},
		},
		Metadata: "bfruntime.proto",
	}, s)
}

// method returns the description of a call without streams.
func method[Q, A any](name string, call func(Service, context.Context, *Q) (*A, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := new(Q)
		if err := decode(in); err != nil {
			return nil, err
		}
		if intercept == nil {
			return call(srv.(Service), ctx, in)
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: fullName(name)}
		return intercept(ctx, in, info, func(ctx context.Context, in any) (any, error) { return call(srv.(Service), ctx, in.(*Q)) })
	}}
}

func fullName(method string) string { return "/" + ServiceName + "/" + method }

// A Client makes the calls.
type Client struct{ Conn grpc.ClientConnInterface }

// Write sends a batch of updates.
func (c Client) Write(ctx context.Context, in *WriteRequest, opts ...grpc.CallOption) (*WriteResponse, error) {
	out := new(WriteResponse)
	return out, c.Conn.Invoke(ctx, fullName("Write"), in, out, opts...)
}

// Read requests entities.
func (c Client) Read(ctx context.Context, in *ReadRequest, opts ...grpc.CallOption) (ReadClient, error) {
	opts = append([]grpc.CallOption{grpc.ForceCodecV2(newCodec())}, opts...)
	stream, err := c.Conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "Read", ServerStreams: true}, fullName("Read"), opts...)
	if err != nil {
		return nil, err
	}
	x := &grpc.GenericClientStream[ReadRequest, ReadResponse]{ClientStream: stream}
	if err := x.SendMsg(in); err != nil {
		return nil, err
	}
	return x, x.CloseSend()
}

// SetForwardingPipelineConfig binds the client to a program, or sends a program.
func (c Client) SetForwardingPipelineConfig(ctx context.Context, in *SetForwardingPipelineConfigRequest, opts ...grpc.CallOption) (*SetForwardingPipelineConfigResponse, error) {
	out := new(SetForwardingPipelineConfigResponse)
	return out, c.Conn.Invoke(ctx, fullName("SetForwardingPipelineConfig"), in, out, opts...)
}

// GetForwardingPipelineConfig requests the running programs and their schemas.
func (c Client) GetForwardingPipelineConfig(ctx context.Context, in *GetForwardingPipelineConfigRequest, opts ...grpc.CallOption) (*GetForwardingPipelineConfigResponse, error) {
	out := new(GetForwardingPipelineConfigResponse)
	return out, c.Conn.Invoke(ctx, fullName("GetForwardingPipelineConfig"), in, out, opts...)
}

// StreamChannel opens the stream on which a client subscribes to notifications.
func (c Client) StreamChannel(ctx context.Context, opts ...grpc.CallOption) (StreamClient, error) {
	stream, err := c.Conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "StreamChannel", ServerStreams: true, ClientStreams: true}, fullName("StreamChannel"), opts...)
	if err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[StreamMessageRequest, StreamMessageResponse]{ClientStream: stream}, nil
}
