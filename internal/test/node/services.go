// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slicesPause collects changes of pods before the EndpointSlices are written.
const slicesPause = 50 * time.Millisecond

// serviceChanges returns a channel that has a token after each change of a Service or of a pod.
func (c *Cluster) serviceChanges(ctx context.Context, pods cache.Informer) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	tell := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	services, err := c.cache.GetInformer(ctx, &corev1.Service{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	for _, informer := range []cache.Informer{pods, services} {
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: tell,
		}); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// keepSlices writes an EndpointSlice for each Service, as kube-controller-manager does otherwise.
func (c *Cluster) keepSlices(ctx context.Context, changes <-chan struct{}) {
	for {
		retry := time.After(time.Hour)
		if err := c.writeSlices(ctx); err != nil && ctx.Err() == nil {
			c.Log.Error(err, "Cannot write EndpointSlices")
			retry = time.After(retryPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
			select { // more of them follow
			case <-ctx.Done():
				return
			case <-time.After(slicesPause):
			}
		case <-retry:
		}
	}
}

func (c *Cluster) writeSlices(ctx context.Context) error {
	services, pods := &corev1.ServiceList{}, &corev1.PodList{}
	if err := c.cache.List(ctx, services); err != nil {
		return err
	}
	if err := c.cache.List(ctx, pods); err != nil {
		return err
	}
	for i := range services.Items {
		service := &services.Items[i]
		slice := sliceOf(service, pods.Items)
		if service.Namespace == metav1.NamespaceDefault && service.Name == "kubernetes" {
			slice = c.apiServerSlice(service)
		}
		if slice == nil {
			continue
		}
		if err := c.writeSlice(ctx, slice); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) writeSlice(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	found := &discoveryv1.EndpointSlice{}
	err := c.cache.Get(ctx, client.ObjectKeyFromObject(slice), found)
	if apierrors.IsNotFound(err) {
		// The cache may not have it yet.
		if err = c.api.Create(ctx, slice); !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = c.api.Get(ctx, client.ObjectKeyFromObject(slice), found)
	}
	if err != nil || equality.Semantic.DeepEqual(found.Endpoints, slice.Endpoints) && equality.Semantic.DeepEqual(found.Ports, slice.Ports) {
		return err
	}
	found = found.DeepCopy()
	found.Endpoints, found.Ports = slice.Endpoints, slice.Ports
	return c.api.Update(ctx, found)
}

// newSlice returns a slice of a Service. Its addresses are loopback addresses, which the API server
// accepts only as names.
func newSlice(service *corev1.Service) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-processes",
			Labels:          map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "processes"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}},
		},
		AddressType: discoveryv1.AddressTypeFQDN,
	}
}

// apiServerSlice has the address of the API server, if it is one that the API server cannot write.
func (c *Cluster) apiServerSlice(service *corev1.Service) *discoveryv1.EndpointSlice {
	server, err := url.Parse(c.Config.Host)
	if err != nil || !strings.HasPrefix(server.Hostname(), "127.") {
		return nil
	}
	port, err := strconv.ParseInt(server.Port(), 10, 32)
	if err != nil {
		return nil
	}
	slice := newSlice(service)
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{server.Hostname()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}
	slice.Ports = []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)}}
	return slice
}

// sliceOf returns the pods that a Service selects, or nil if it selects none.
func sliceOf(service *corev1.Service, pods []corev1.Pod) *discoveryv1.EndpointSlice {
	if len(service.Spec.Selector) == 0 {
		return nil
	}
	slice, selector := newSlice(service), labels.SelectorFromSet(service.Spec.Selector)
	ports := map[string]int32{}
	for i := range pods {
		pod := &pods[i]
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Namespace != service.Namespace || finished || pod.Status.PodIP == "" || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		serving, terminating := IsReady(pod), pod.DeletionTimestamp != nil
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, NodeName: &pod.Spec.NodeName,
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(serving && !terminating || service.Spec.PublishNotReadyAddresses), Serving: &serving, Terminating: &terminating},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
		for _, port := range service.Spec.Ports {
			for j := range pod.Spec.Containers {
				if number := portOf(&pod.Spec.Containers[j], port.TargetPort); number != 0 {
					ports[port.Name] = number
				}
			}
		}
	}
	slices.SortFunc(slice.Endpoints, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(a.Addresses[0], b.Addresses[0]) })
	for _, port := range service.Spec.Ports {
		if number, found := ports[port.Name]; found {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &number, Protocol: new(cmp.Or(port.Protocol, corev1.ProtocolTCP))})
		}
	}
	return slice
}

// IsReady reports that a pod is ready. It may be ending.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// endpointsOf returns the ready addresses behind a port of the Service with this address.
func (c *Cluster) endpointsOf(ctx context.Context, clusterIP string, number int32) (service bool, addresses []string, err error) {
	services := &corev1.ServiceList{}
	if err := c.cache.List(ctx, services); err != nil {
		return false, nil, err
	}
	i := slices.IndexFunc(services.Items, func(s corev1.Service) bool { return slices.Contains(s.Spec.ClusterIPs, clusterIP) })
	if i < 0 {
		return false, nil, nil
	}
	found := services.Items[i]
	j := slices.IndexFunc(found.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == number })
	if j < 0 {
		return true, nil, nil
	}
	all := &discoveryv1.EndpointSliceList{}
	err = c.cache.List(ctx, all, client.InNamespace(found.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: found.Name})
	for _, slice := range all.Items {
		for _, port := range slice.Ports {
			if ptr.Deref(port.Name, "") != found.Spec.Ports[j].Name || port.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) {
					addresses = append(addresses, endpoint.Addresses[0]+":"+strconv.Itoa(int(*port.Port)))
				}
			}
		}
	}
	return true, addresses, err
}
