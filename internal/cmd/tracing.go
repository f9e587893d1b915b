// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// tracingFlag says where traces go. Only commands that nobody waits for have it.
func tracingFlag(flags *pflag.FlagSet, endpoint *string) {
	flags.StringVar(endpoint, "tracing-endpoint", tracing.Endpoint(os.Getenv),
		"URL of an OpenTelemetry receiver that speaks OTLP over gRPC, http:// or, with TLS, https://, to send traces to; "+
			"default $OTEL_EXPORTER_OTLP_ENDPOINT; empty for none")
}
