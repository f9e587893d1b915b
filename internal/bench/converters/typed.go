// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	v1 "github.com/conversion-operator/conversion-operator/internal/bench/converters/v1"
	v2 "github.com/conversion-operator/conversion-operator/internal/bench/converters/v2"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// ServeTypedCommand is the argument by which the benchmark's binary serves controller-runtime's
// handler: each subject is a process, so that none shares the garbage collection of the clients.
const ServeTypedCommand = "serve-typed"

// ServeTyped serves controller-runtime's handler until ctx ends, by the arguments after
// ServeTypedCommand.
func ServeTyped(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(ServeTypedCommand, flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	group := flags.String("group", "", "the group of the kind")
	address := flags.String("bind-address", "", "address to listen on, with TLS")
	certificates := flags.String("certificates", "", "directory of tls.crt and tls.key")
	if err := flags.Parse(args); err != nil {
		return err
	}
	handler, err := newTypedHandler(*group)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(webhook.ConvertPath, handler)
	server := &http.Server{
		Handler: mux, Addr: *address, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	return server.ListenAndServeTLS(filepath.Join(*certificates, "tls.crt"), filepath.Join(*certificates, "tls.key"))
}

// newTypedHandler returns controller-runtime's handler for a hub and a spoke in Go types, of a kind in a
// group.
func newTypedHandler(group string) (http.Handler, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: group, Version: "v1"}, &v1.Task{})
	scheme.AddKnownTypes(schema.GroupVersion{Group: group, Version: "v2"}, &v2.Task{})
	spoke := conversion.NewSpokeConverter(&v1.Task{}, nil, typedToHub)
	converter, err := conversion.NewHubSpokeConverter(&v2.Task{}, spoke)(scheme)
	if err != nil {
		return nil, err
	}
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(schema.GroupKind{Group: group, Kind: kind}, converter); err != nil {
		return nil, err
	}
	return conversion.NewWebhookHandler(scheme, registry), nil
}

func typedToHub(_ context.Context, src *v1.Task, dst *v2.Task) error {
	dst.ObjectMeta, dst.Status = src.ObjectMeta, v2.TaskStatus(src.Status)
	dst.Spec = v2.TaskSpec{
		Runtime:     v2.Runtime{Image: src.Spec.Image},
		Concurrency: policies[src.Spec.ConcurrencyPolicy],
		Description: src.Spec.Description,
		Budget:      src.Spec.Budget,
		Env:         src.Spec.Env,
		Template:    src.Spec.Template,
	}
	if fields := strings.SplitN(src.Spec.Cron, " ", len(cronFields)); len(fields) == len(cronFields) {
		dst.Spec.Schedule = v2.Schedule{Minute: fields[0], Hour: fields[1], DayOfMonth: fields[2], Month: fields[3], DayOfWeek: fields[4]}
	}
	if host, port, ok := strings.Cut(src.Spec.Endpoint, ":"); ok {
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			return fmt.Errorf("spec.endpoint: %w", err)
		}
		dst.Spec.Host, dst.Spec.Port = host, int32(number)
	}
	if src.Spec.NodeName != "" {
		dst.Spec.Nodes = []string{src.Spec.NodeName}
	}
	for _, port := range src.Spec.Ports {
		dst.Spec.Ports = append(dst.Spec.Ports, v2.Port{Name: port.Name, ContainerPort: port.Number, Protocol: port.Protocol})
	}
	if src.Spec.Owner == "" {
		return nil
	}
	kept, err := keep(src.Spec.Owner)
	if err != nil {
		return err
	}
	dst.Annotations = maps.Clone(src.Annotations)
	if dst.Annotations == nil {
		dst.Annotations = map[string]string{}
	}
	dst.Annotations[keptAnnotation] = kept
	return nil
}
